"""Label smoothing and the focal loss: torch, closed forms, gradients, extreme logits."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional as F

from descend.errors import Mistake
from descend.losses.classification import (
    binary_cross_entropy,
    binary_cross_entropy_of_probabilities,
    class_weighted_mean,
    cross_entropy,
    focal,
    focal_binary_cross_entropy,
    focal_cross_entropy,
    nll,
    smooth_targets,
    smoothed_cross_entropy,
    soft_cross_entropy,
)
from descend.losses.risk import weighted_risk
from tests.close import close


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


@pytest.mark.system("output-heads-and-pipeline", "label-smoothing")
@pytest.mark.system("label-smoothing")
@pytest.mark.system("label-smoothing", "targets")
@pytest.mark.parametrize("eps", [0.0, 0.1, 0.15, 1.0])
def test_smoothed_loss_is_that_of_the_smoothed_target(eps: float) -> None:
    z, y = normal(2, 5, 4), torch.arange(10).view(2, 5) % 4
    q = smooth_targets(y, 4, eps, torch.float64)
    close(q.sum(-1), torch.ones(2, 5, dtype=torch.float64))
    close(q.gather(-1, y[..., None]).squeeze(-1), torch.full((2, 5), 1 - eps + eps / 4, dtype=torch.float64))
    close(smoothed_cross_entropy(z, y, eps), soft_cross_entropy(z, q))
    close(smoothed_cross_entropy(z, y, eps).mean(), F.cross_entropy(z.view(10, 4), y.flatten(), label_smoothing=eps))


@pytest.mark.system("label-smoothing")
@pytest.mark.system("label-smoothing", "minimum")
def test_the_least_smoothed_loss_is_the_entropy_of_the_target() -> None:
    """VOM-13.9.2: not 0, and reached at finite logits log q."""
    y = torch.tensor([1])
    q = smooth_targets(y, 3, 0.15, torch.float64)
    z = q.log().requires_grad_()
    loss = smoothed_cross_entropy(z, y, 0.15)
    close(loss, torch.special.entr(q).sum(-1))
    assert loss.item() > 0.39
    assert torch.autograd.grad(loss.sum(), z)[0].abs().max() < 1e-12
    surer = smoothed_cross_entropy(torch.tensor([[0.0, 50.0, 0.0]], dtype=torch.float64), y, 0.15)
    assert surer > loss  # being surer than the target costs


@pytest.mark.system("output-heads-and-pipeline", "label-smoothing")
@pytest.mark.system("label-smoothing")
@pytest.mark.system("label-smoothing", "padding")
def test_padding_is_left_out_of_the_smoothed_mean() -> None:
    """torch's ignore_index, by weights."""
    z, y = normal(6, 5, seed=1).requires_grad_(), torch.tensor([1, 0, 4, 0, 2, 3])  # 0 is PAD
    loss = weighted_risk(smoothed_cross_entropy(z, y, 0.1), (y != 0).double())
    close(loss, F.cross_entropy(z, y, label_smoothing=0.1, ignore_index=0))
    assert not torch.autograd.grad(loss, z)[0][[1, 3]].any()


@pytest.mark.system("focal-loss")
@pytest.mark.system("focal-loss", "variants")
@pytest.mark.parametrize("gamma", [0.0, 0.5, 1.0, 2.0, 5.0])
def test_focal_follows_its_formula(gamma: float) -> None:
    """MF (28.2.7) on probabilities, with the softmax and with one logit."""
    z, y = normal(7, 3, seed=2), torch.tensor([0, 2, 1, 1, 0, 2, 2])
    p = z.softmax(-1)[torch.arange(7), y]
    close(focal_cross_entropy(z, y, gamma), -((1 - p) ** gamma) * p.log())
    s, hot = z[:, 0], (y == 0).double()
    p = torch.where(hot == 1, s.sigmoid(), 1 - s.sigmoid())
    close(focal_binary_cross_entropy(s, hot, gamma), -((1 - p) ** gamma) * p.log())
    two = torch.stack([torch.zeros_like(s), s], -1)  # one logit is two, of which one is 0
    close(focal_cross_entropy(two, hot.long(), gamma), focal_binary_cross_entropy(s, hot, gamma))


@pytest.mark.system("focal-loss")
@pytest.mark.system("focal-loss", "gamma-zero", "alpha")
def test_focal_with_gamma_0_is_cross_entropy_and_alpha_is_a_weight() -> None:
    z, y, alpha = normal(4, 3, seed=3), torch.tensor([0, 2, 1, 1]), torch.tensor([0.25, 0.75, 0.5]).double()
    close(focal_cross_entropy(z, y, 0.0), cross_entropy(z, y))
    p = z.softmax(-1)[torch.arange(4), y]
    known = (-alpha[y] * (1 - p) ** 2 * p.log()).sum() / alpha[y].sum()
    close(class_weighted_mean(focal_cross_entropy(z, y), y, alpha), known)
    ease = focal_cross_entropy(z, y) / cross_entropy(z, y)
    assert (ease.argsort() == p.argsort(descending=True)).all()  # the easier, the less it counts


@pytest.mark.system("focal-loss")
@pytest.mark.system("label-smoothing")
def test_gradcheck() -> None:
    z, y = normal(3, 4, seed=4).requires_grad_(), torch.tensor([0, 3, 1])
    for gamma in (0.0, 0.5, 1.0, 2.0):
        assert torch.autograd.gradcheck(lambda z: focal_cross_entropy(z, y, gamma), z)
        assert torch.autograd.gradcheck(lambda z: focal_binary_cross_entropy(z, (z > 0).double(), gamma), z)
    assert torch.autograd.gradcheck(lambda z: smoothed_cross_entropy(z, y, 0.1), z)


@pytest.mark.system("focal-loss")
@pytest.mark.system("label-smoothing")
@pytest.mark.system("cross-entropy")
@pytest.mark.system("binary-cross-entropy")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("gamma", [0.0, 0.3, 1.0, 2.0])
def test_extreme_logits_have_finite_losses_and_gradients(dtype: torch.dtype, gamma: float) -> None:
    z = torch.tensor([[1e4, -1e4, 0.0]], dtype=dtype).expand(3, 3).clone().requires_grad_()
    y, hot = torch.arange(3), torch.eye(3, dtype=dtype)
    for losses in (
        focal_cross_entropy(z, y, gamma),
        focal_binary_cross_entropy(z, hot, gamma),
        smoothed_cross_entropy(z, y, 0.1),
        soft_cross_entropy(z, smooth_targets(y, 3, 0.1, dtype)),
        binary_cross_entropy(z, hot),
    ):
        assert losses.isfinite().all()
        assert torch.autograd.grad(losses.sum(), z)[0].isfinite().all()
    close(focal_cross_entropy(z, y, gamma), torch.tensor([0.0, 2e4, 1e4], dtype=dtype))


@pytest.mark.system("binary-cross-entropy")
def test_gradient_of_certain_probabilities_is_the_limit() -> None:
    """p = y: slope 1/p or −1/p of the term that counts, and nothing of 0/0."""
    p = torch.tensor([1.0, 0.0, 0.3], requires_grad=True)
    losses = binary_cross_entropy_of_probabilities(p, torch.tensor([1.0, 0.0, 1.0]))
    close(losses, torch.tensor([0.0, 0.0, -math.log(0.3)]))
    close(torch.autograd.grad(losses.sum(), p)[0], torch.tensor([-1.0, 1.0, -1 / 0.3]))
    assert binary_cross_entropy_of_probabilities(torch.zeros(1), torch.ones(1)).item() == math.inf


@pytest.mark.system("binary-cross-entropy")
@pytest.mark.system("binary-cross-entropy", "two-inputs")
@settings(max_examples=25, derandomize=True, deadline=None)
@given(st.lists(st.tuples(st.floats(1e-6, 1 - 1e-6), st.floats(0, 1)), min_size=1, max_size=6), st.booleans())
def test_binary_cross_entropy_of_probabilities_is_torchs(pairs: list[tuple[float, float]], edge: bool) -> None:
    """Also beside a certain probability, where the other expression is taken."""
    pairs = pairs + [(1.0, 1.0)] * edge
    p, y = torch.tensor(pairs, dtype=torch.float64).T
    close(binary_cross_entropy_of_probabilities(p, y), F.binary_cross_entropy(p, y, reduction="none"))


@pytest.mark.system("cross-entropy")
@pytest.mark.system("nll-loss")
@pytest.mark.system("focal-loss")
@pytest.mark.system("label-smoothing")
@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda z: cross_entropy(z, torch.tensor([0, 3])), "record 1: label 3 is not one of the classes 0 to 2"),
        (lambda z: cross_entropy(z, torch.tensor([-100, 0])), "record 0: label -100"),
        (lambda z: nll(z, torch.tensor([0, -1])), "record 1: label -1"),
        (lambda z: nll(z[None], torch.tensor([[0, 7]])), "record 0, 1: label 7"),
        (lambda z: smooth_targets(torch.tensor([5]), 3, 0.1), "record 0: label 5"),
        (lambda z: focal_cross_entropy(z, torch.tensor([9, 0])), "record 0: label 9"),
        (lambda z: focal(z[0], -1.0), "gamma -1.0"),
        (lambda z: cross_entropy(z, torch.tensor([0])), "need labels (2,), not (1,)"),
        (lambda z: cross_entropy(z, torch.tensor([0.0, 1.0])), "labels are torch.float32"),
        (lambda z: soft_cross_entropy(z, z[0]), "logits and target distributions differ in shape: (2, 3) and (3,)"),
        (lambda z: soft_cross_entropy(z, z - 9), "is negative"),
        (lambda z: binary_cross_entropy(z[:, :1], torch.ones(2)), "differ in shape: (2, 1) and (2,)"),
        (lambda z: binary_cross_entropy(z[:, 0], torch.tensor([0.0, 2.0])), "record 1: label 2"),
        (lambda z: binary_cross_entropy_of_probabilities(z[0], torch.ones(3)), "record 2: probability -1"),
        (lambda z: binary_cross_entropy_of_probabilities(z[0] * math.nan, torch.ones(3)), "probability nan"),
        (lambda z: class_weighted_mean(z[0], torch.tensor([0, 0, 0]), torch.tensor([0.0, 1.0])), "add up to 0"),
    ],
)
def test_bad_input_is_named_in_one_line(call: object, says: str) -> None:
    with pytest.raises(Mistake) as caught:
        call(torch.tensor([[0.5, 0.25, -1.0], [0.0, 0.0, 0.0]]))  # type: ignore[operator]
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.system("cross-entropy")
def test_losses_can_be_mapped_and_one_row_is_enough() -> None:
    """torch.func sees no check; logits of one example need no batch."""
    z, y = normal(4, 3, seed=5), torch.tensor([0, 2, 1, 1])
    each = torch.func.vmap(torch.func.grad(cross_entropy))(z, y)
    close(each, z.softmax(-1) - F.one_hot(y, 3))
    hot = (y == 1).double()
    close(torch.func.vmap(torch.func.grad(binary_cross_entropy))(z[:, 0], hot), z[:, 0].sigmoid() - hot)
    close(cross_entropy(z[1], y[1]), cross_entropy(z, y)[1])
    assert cross_entropy(z[:0], y[:0]).shape == (0,)
