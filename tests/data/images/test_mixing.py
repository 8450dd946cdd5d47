"""MixUp and CutMix: labels sum to 1, their weights are those of the pixels."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta, kstest
from torch.nn import functional as F

from descend.data.images.mixing import CutMix, MixUp, cutmix, mixup, proportions
from descend.errors import Mistake
from descend.losses.classification import cross_entropy, soft_cross_entropy
from tests.close import close

pytestmark = pytest.mark.system("mixup-and-cutmix")

B = 6
X = torch.rand(B, 2, 7, 9, generator=torch.Generator().manual_seed(0))
Y = F.one_hot(torch.tensor([0, 1, 2, 0, 1, 2]), 3).float()
PARTNER = torch.tensor([1, 2, 3, 4, 5, 0])


@pytest.mark.system("mixup-and-cutmix", "mixup")
def test_lambda_one_is_the_batch_itself() -> None:
    one, zero = torch.ones(B), torch.zeros(B)
    for mix in (mixup, lambda *a: cutmix(*a, torch.zeros(B, 2))):
        x, y = mix(X, Y, one, PARTNER)
        close(x, X)
        close(y, Y)
        x, y = mix(X, Y, zero, PARTNER)
        close(x, X[PARTNER])
        close(y, Y[PARTNER])


@pytest.mark.system("mixup-and-cutmix", "mixup")
def test_mixup_by_hand() -> None:
    x, y = mixup(X, Y, torch.full((B,), 0.3), PARTNER)
    close(x[0], 0.3 * X[0] + 0.7 * X[1])
    close(y[0], torch.tensor([0.3, 0.7, 0.0]))


@pytest.mark.system("mixup-and-cutmix", "cutmix")
@settings(max_examples=20, deadline=None, derandomize=True)
@given(st.integers(2, 12), st.integers(2, 12), st.integers(0, 10_000))
def test_cutmix_weights_are_the_exact_area(h: int, w: int, seed: int) -> None:
    """Images of one colour each: the label is the share of each colour, also where the rectangle is cut off."""
    random = torch.Generator().manual_seed(seed)
    colours = torch.arange(4.0)
    x, y = colours.view(4, 1, 1, 1).expand(4, 1, h, w), torch.eye(4)
    centre, lam = 2 * torch.rand(4, 2, generator=random) - 1, torch.rand(4, generator=random)
    mixed, label = cutmix(x, y, lam, torch.tensor([1, 2, 3, 0]), centre)
    for i in range(4):
        share = torch.stack([(mixed[i] == c).float().mean() for c in colours])
        close(label[i], share)
    assert (label.diagonal() >= lam - 1.0 / min(h, w)).all()  # never more is pasted than was asked, but for rounding


@pytest.mark.system("mixup-and-cutmix", "mixup")
@pytest.mark.parametrize("mix", [MixUp(0.4), CutMix(1.0)])
def test_random_batches(mix: MixUp | CutMix) -> None:
    first = mix(X, Y, torch.Generator().manual_seed(1))
    again, other = (mix(X, Y, torch.Generator().manual_seed(seed)) for seed in (1, 2))
    close(first[1].sum(1), torch.ones(B))
    assert (first[1] >= 0).all()
    assert torch.equal(first[0], again[0])
    assert not torch.equal(first[0], other[0])
    assert first[0].shape == X.shape


def test_proportions_are_beta() -> None:
    for a in (0.2, 1.0, 3.0):
        draws = proportions(4000, a, torch.Generator().manual_seed(0))
        assert kstest(draws.numpy(), beta(a, a).cdf).pvalue > 0.01
    with pytest.raises(Mistake, match="a > 0"):
        proportions(3, 0.0, torch.Generator())


def test_the_loss_is_mixed_as_the_labels_are() -> None:
    z = torch.randn(B, 3, generator=torch.Generator().manual_seed(3))
    lam = torch.full((B,), 0.3)
    _, y = mixup(X, Y, lam, PARTNER)
    label = Y.argmax(1)
    expected = 0.3 * cross_entropy(z, label) + 0.7 * cross_entropy(z, label[PARTNER])
    close(soft_cross_entropy(z, y), expected)


def test_proportions_are_those_of_two_gamma_draws() -> None:
    gamma = torch._standard_gamma(
        torch.full((2, 50), 0.4, dtype=torch.float64), generator=torch.Generator().manual_seed(5)
    )
    close(proportions(50, 0.4, torch.Generator().manual_seed(5)), (gamma[0] / (gamma[0] + gamma[1])).float())
