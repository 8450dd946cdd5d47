"""The GAN's losses: the books' numbers, torch's binary cross-entropy, signs, gradients, extreme logits."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from descend.losses.adversarial import discriminator_loss, non_saturating, saturating
from tests.close import close


def t(values: object) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


@pytest.mark.system("gan")
@pytest.mark.system("gan", "losses")
def test_two_binary_cross_entropies() -> None:
    """DLN-GAN-bce: D(x) = 0.9, D(G(z)) = 0.2. (Printed to ten digits, here and below.)"""
    close(discriminator_loss(t([0.9]).logit(), t([0.2]).logit()), t(0.328504067), loosen=10)
    real, fake = (torch.randn(7, generator=torch.Generator().manual_seed(s)) for s in (0, 1))
    bce = F.binary_cross_entropy_with_logits
    close(discriminator_loss(real, fake), bce(real, torch.ones(7)) + bce(fake, torch.zeros(7)))


@pytest.mark.system("gan")
@pytest.mark.system("gan", "optimum")
@pytest.mark.system("generator-loss-variants")
def test_equilibrium() -> None:
    """DLN-GAN-equilibrium: D = ½ everywhere gives 2 log 2, and V = −log 4."""
    half = torch.zeros(5, dtype=torch.float64)
    close(discriminator_loss(half, half), t(1.386294361), loosen=10)
    close(discriminator_loss(half, half), t(math.log(4)))
    close(saturating(half), t(-math.log(2)))
    close(non_saturating(half), t(0.6931471806), loosen=10)


@pytest.mark.system("gan")
@pytest.mark.system("gan", "optimum")
def test_the_best_discriminator_measures_the_divergence() -> None:
    """S940-8.1: at D* = p/(p+q) the value is 2 JS − log 4, and no logit can be improved.

    p = (0.1, 0.4, 0.3, 0.2) as ten real examples, q uniform over the same four as four generated ones.
    """
    p, q = t([0.1, 0.4, 0.3, 0.2]), t([0.25, 0.25, 0.25, 0.25])
    s = (p / q).log().requires_grad_()
    close(s.sigmoid(), t([0.2857142857, 0.6153846154, 0.5454545455, 0.4444444444]), loosen=10)
    rows = torch.tensor([0, 1, 1, 1, 1, 2, 2, 2, 3, 3])
    loss = discriminator_loss(s[rows], s)
    close(-loss, t(-1.330563134), loosen=10)
    close(1 + torch.autograd.grad(loss, s)[0], torch.ones(4, dtype=torch.float64))  # the gradient is 0


@pytest.mark.system("generator-loss-variants")
@pytest.mark.system("generator-loss-variants", "gradients")
@pytest.mark.parametrize(
    ("d", "weak", "strong"),
    [  # DLN-GAN-saturation, S940-8.1-nonsaturating-gradient
        ([0.001, 0.01, 0.5], [-0.001, -0.01, -0.5], [-0.999, -0.99, -0.5]),
        ([0.01, 0.1, 0.5, 0.9], [-0.01, -0.1, -0.5, -0.9], [-0.99, -0.9, -0.5, -0.1]),
    ],
)
def test_which_loss_teaches_a_losing_generator(d: list[float], weak: list[float], strong: list[float]) -> None:
    for loss, known in ((saturating, weak), (non_saturating, strong)):
        s = t(d).logit().requires_grad_()
        (grad,) = torch.autograd.grad(loss(s) * len(d), s)
        close(grad, t(known))


@pytest.mark.system("generator-loss-variants")
@pytest.mark.system("generator-loss-variants", "erratum")
def test_descending_raises_d_of_the_generated() -> None:
    """Erratum DLN-GAN-nonsaturating-sign: max −log D lowers D; the loss here is −log D, minimised."""
    for loss in (saturating, non_saturating):
        s = t([0.1]).logit().requires_grad_()
        (grad,) = torch.autograd.grad(loss(s), s)
        assert (s - 0.01 * grad).sigmoid() > 0.1
    d = t(0.1).requires_grad_()
    (ascent,) = torch.autograd.grad(d.log(), d)
    close(d + 0.01 * ascent, t(0.2))  # the books' recomputed step, D itself being the variable


@pytest.mark.system("gan")
@pytest.mark.system("gan", "losses")
@pytest.mark.system("generator-loss-variants")
@pytest.mark.system("generator-loss-variants", "stable")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_extreme_logits(dtype: torch.dtype) -> None:
    big = torch.tensor([1e4], dtype=dtype)
    for real, fake, loss in ((big, -big, 0.0), (-big, big, 2e4)):
        close(discriminator_loss(real, fake) + 1, torch.tensor(loss + 1, dtype=dtype))
    close(non_saturating(-big), big[0])
    close(saturating(big), -big[0])
    for loss_fn in (saturating, non_saturating):
        for sign in (1, -1):
            s = (sign * big).clone().requires_grad_()
            assert torch.autograd.grad(loss_fn(s), s)[0].isfinite().all()


@pytest.mark.system("gan")
@pytest.mark.system("generator-loss-variants")
def test_gradcheck() -> None:
    real, fake = (torch.linspace(-3, 2, 5, dtype=torch.float64, requires_grad=True) for _ in range(2))
    assert torch.autograd.gradcheck(discriminator_loss, (real, fake))
    assert torch.autograd.gradcheck(non_saturating, fake)
    assert torch.autograd.gradcheck(saturating, fake)
