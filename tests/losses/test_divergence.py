"""KL divergence from probabilities and log-probabilities: scipy, torch, zeros, extreme logits."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import rel_entr
from torch import Tensor
from torch.nn import functional as F

from descend.errors import Mistake
from descend.losses.classification import soft_cross_entropy
from descend.losses.divergence import kl, kl_of_logarithms, kl_of_probabilities
from tests.close import close

SLUG = "kl-div-loss"


def distributions(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)).softmax(-1)


@pytest.mark.system("kl-div-loss", "both-inputs")
@pytest.mark.system(SLUG)
def test_both_conventions_give_scipys_value() -> None:
    """DLN-KLDivLoss-input: probabilities for DLN's x, logarithms for torch's."""
    x, y = distributions(4, 5), distributions(4, 5, seed=1)
    known = torch.from_numpy(rel_entr(y.numpy(), x.numpy()).sum(-1))
    close(kl_of_probabilities(x, y), known)
    close(kl(x.log(), y), known)
    close(kl_of_logarithms(x.log(), y.log()), known)
    close(kl(x.log(), y).mean(), F.kl_div(x.log(), y, reduction="batchmean"))


@pytest.mark.system(SLUG)
@settings(max_examples=25, derandomize=True, deadline=None)
@given(st.lists(st.lists(st.floats(-30, 30), min_size=3, max_size=3), min_size=2, max_size=2))
def test_never_negative_and_zero_for_equals(logits: list[list[float]]) -> None:
    z, w = torch.tensor(logits, dtype=torch.float64)
    assert kl(z.log_softmax(-1), w.softmax(-1)) >= -1e-12
    assert abs(kl(w.log_softmax(-1), w.softmax(-1))) < 1e-12
    close(
        kl(z.log_softmax(-1), w.softmax(-1)) + 1,
        soft_cross_entropy(z, w.softmax(-1)) - soft_cross_entropy(w, w.softmax(-1)) + 1,
    )


@pytest.mark.system("kl-div-loss", "zero-log-zero")
@pytest.mark.system(SLUG)
def test_zero_log_zero_is_zero_in_value_and_gradient() -> None:
    """A one-hot target, and a class that is impossible for both."""
    x = torch.tensor([0.25, 0.75, 0.0], dtype=torch.float64).requires_grad_()
    y = torch.tensor([0.0, 1.0, 0.0], dtype=torch.float64)
    loss = kl_of_probabilities(x, y)
    close(loss, torch.tensor(-math.log(0.75), dtype=torch.float64))
    close(torch.autograd.grad(loss, x)[0], torch.tensor([0.0, -1 / 0.75, 0.0], dtype=torch.float64))
    log_x = x.detach().log().requires_grad_()  # with −inf
    loss = kl(log_x, y)
    close(loss, torch.tensor(-math.log(0.75), dtype=torch.float64))
    close(torch.autograd.grad(loss, log_x)[0], torch.tensor([0.0, -1.0, 0.0], dtype=torch.float64))
    assert kl_of_probabilities(y, x.detach()).item() == math.inf  # impossible for x alone


@pytest.mark.system(SLUG)
def test_gradcheck_and_extreme_logits() -> None:
    z, y = torch.randn(3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(2)), distributions(3, 4)
    assert torch.autograd.gradcheck(lambda z: kl(z.log_softmax(-1), y), z.requires_grad_())
    assert torch.autograd.gradcheck(lambda z: kl_of_probabilities(z.softmax(-1), y), z)
    far = torch.tensor([[1e4, -1e4, 0.0]], requires_grad=True)
    for target in (torch.tensor([[0.0, 0.5, 0.5]]), torch.tensor([[0.2, 0.4, 0.4]])):
        loss = kl(far.log_softmax(-1), target)
        assert loss.isfinite().all()
        assert torch.autograd.grad(loss.sum(), far)[0].isfinite().all()


@pytest.mark.system(SLUG)
def test_bad_input_is_named() -> None:
    """torch takes probabilities for logarithms and answers −1.352 (erratum of DLN); here they are refused."""
    x, y = torch.tensor([[0.25, 0.25, 0.5]]), torch.tensor([[0.5, 0.25, 0.25]])
    assert F.kl_div(x, y, reduction="sum").item() == pytest.approx(-1.352220771, abs=1e-6)
    with pytest.raises(Mistake, match=r"record 0, 0: log-probability 0\.25 is above 0; give kl_of_probabilities"):
        kl(x, y)
    with pytest.raises(Mistake, match=r"record 0, 1: probability -0\.25 is negative"):
        kl_of_probabilities(x * torch.tensor([1, -1, 1]), y)
    with pytest.raises(Mistake, match=r"record 0, 2: probability -0\.25 is negative"):
        kl(x.log(), y * torch.tensor([1, 1, -1]))
    with pytest.raises(Mistake, match=r"differ in shape: \(1, 3\) and \(3,\)"):
        kl(x.log(), y[0])
