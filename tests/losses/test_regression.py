"""Regression losses: the books' numbers, torch and scipy, minimisers, outliers, maximum likelihood."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats
from torch import Tensor
from torch.nn import functional as F

from descend.errors import Mistake
from descend.losses.classification import binary_cross_entropy, cross_entropy
from descend.losses.regression import (
    absolute_error,
    gaussian_nll,
    half_squared_error,
    huber,
    smooth_l1,
    squared_distance,
    squared_error,
)
from descend.losses.risk import per_example, summed_risk
from tests.close import close

Loss = Callable[[Tensor, Tensor], Tensor]
LOSSES: list[Loss] = [squared_error, half_squared_error, absolute_error, huber, smooth_l1]


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


@pytest.mark.system("mse-loss")
@pytest.mark.system("mse-loss", "reductions", "sum-over-outputs", "half")
def test_three_reductions_and_the_factor_k() -> None:
    """DLN-A.51 and MF-A.26: MF sums over the K outputs, torch takes their mean too."""
    yhat, y = normal(6, 4), normal(6, 4, seed=1)
    values = squared_error(yhat, y)
    close(values, F.mse_loss(yhat, y, reduction="none"))
    close(values.mean(), F.mse_loss(yhat, y))
    close(values.sum(), F.mse_loss(yhat, y, reduction="sum"))
    close(squared_distance(yhat, y).mean(), 4 * F.mse_loss(yhat, y))
    close(squared_distance(yhat, y), torch.linalg.vector_norm(yhat - y, dim=1) ** 2)
    close(half_squared_error(yhat, y), values / 2)


@pytest.mark.system("mse-loss")
@pytest.mark.system("mse-loss", "half")
def test_gradients_of_the_two_scales() -> None:
    """MF-4.2: 2(ŷ − y), and ŷ − y with the half."""
    yhat, y = torch.tensor([2.0, -1.0], dtype=torch.float64).requires_grad_(), torch.tensor([1.5, 1.0]).double()
    close(torch.autograd.grad(squared_error(yhat, y).sum(), yhat)[0], torch.tensor([1.0, -4.0]).double())
    close(torch.autograd.grad(half_squared_error(yhat, y).sum(), yhat)[0], torch.tensor([0.5, -2.0]).double())


@pytest.mark.system("huber-and-smooth-l1")
@pytest.mark.system("huber-and-smooth-l1", "two-scalings")
@pytest.mark.parametrize("width", [0.25, 1.0, 3.0])
def test_huber_and_smooth_l1(width: float) -> None:
    """MF-A.29 and DLN-A.54: scipy's Huber, torch's smooth L1, and the factor between them."""
    r, zero = torch.linspace(-5, 5, 81, dtype=torch.float64), torch.zeros(81, dtype=torch.float64)
    close(huber(r, zero, width), torch.from_numpy(special.huber(width, r.numpy())))
    close(smooth_l1(r, zero, width), F.smooth_l1_loss(r, zero, reduction="none", beta=width))
    close(smooth_l1(r, zero, width), huber(r, zero, width) / width)


@pytest.mark.system("huber-and-smooth-l1")
@pytest.mark.system("huber-and-smooth-l1", "continuous")
@settings(max_examples=30, derandomize=True, deadline=None)
@given(st.floats(0.01, 100.0), st.sampled_from([-1.0, 1.0]))
def test_value_and_slope_are_continuous_at_the_joint(width: float, side: float) -> None:
    """Both branches give δ²/2 and slope δ sign r there (β/2 and sign r for smooth L1)."""
    near = side * width * torch.tensor([1 - 1e-9, 1 + 1e-9], dtype=torch.float64).requires_grad_()
    for losses, value, slope in (
        (huber(near, torch.zeros(2).double(), width), width**2 / 2, side * width),
        (smooth_l1(near, torch.zeros(2).double(), width), width / 2, side),
    ):
        close(
            losses, torch.full((2,), value, dtype=torch.float64), loosen=10
        )  # the points are 1e-9 away from the joint
        close(torch.autograd.grad(losses.sum(), near)[0], torch.full((2,), slope, dtype=torch.float64), loosen=10)


@pytest.mark.system("mse-loss")
@pytest.mark.system("l1-loss")
@pytest.mark.system("huber-and-smooth-l1")
def test_gradcheck_and_extremes() -> None:
    yhat, y = normal(3, 4, seed=2).mul(2).requires_grad_(), normal(3, 4, seed=3)
    far = torch.tensor([1e4, -1e4, 0.0], requires_grad=True)
    for loss in LOSSES:
        assert torch.autograd.gradcheck(lambda yhat: loss(yhat, y), yhat)
        losses = loss(far, torch.zeros(3))
        assert losses.isfinite().all()
        assert torch.autograd.grad(losses.sum(), far)[0].isfinite().all()


def minimiser(loss: Loss, y: Tensor) -> float:
    """The constant of least total loss, on a fine grid."""
    grid = torch.linspace(float(y.min()), float(y.max()), 4001, dtype=torch.float64)
    losses = loss(grid[:, None].expand(-1, len(y)), y.expand(len(grid), -1)).sum(1)
    return float(grid[losses.argmin()])


@pytest.mark.system("mse-loss")
@pytest.mark.system("l1-loss")
@pytest.mark.system("l1-loss", "median")
@pytest.mark.system("huber-and-smooth-l1")
def test_minimisers() -> None:
    """DLN-A.53: the mean for the square, the median for the absolute value; Huber's lies between, near the median."""
    y = torch.tensor([1.0, 1.5, 2.0, 2.5, 30.0], dtype=torch.float64)
    assert minimiser(squared_error, y) == pytest.approx(7.4, abs=0.01)
    assert minimiser(absolute_error, y) == pytest.approx(2.0, abs=0.01)
    assert 2.0 < minimiser(huber, y) < 2.5
    assert minimiser(lambda a, b: huber(a, b, 1e3), y) == pytest.approx(7.4, abs=0.01)


def fitted(loss: Loss, x: Tensor, y: Tensor) -> Tensor:
    """Slope and intercept of the line with the least mean loss."""
    w = torch.zeros(2, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([w], max_iter=200, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimizer.zero_grad()
        value = loss(w[0] * x + w[1], y).mean()
        value.backward()
        return value

    optimizer.step(closure)
    return w.detach()


@pytest.mark.system("l1-loss")
@pytest.mark.system("l1-loss", "outliers")
@pytest.mark.system("huber-and-smooth-l1")
@pytest.mark.system("huber-and-smooth-l1", "outliers")
def test_robust_losses_are_not_moved_by_outliers() -> None:
    """MF-A.29: a line y = 2x + 1 with noise and 10% gross errors."""
    x = torch.linspace(-1, 1, 100, dtype=torch.float64)
    y = 2 * x + 1 + 0.1 * normal(100, seed=4)
    y[::10] += 20 * x[::10]
    true = torch.tensor([2.0, 1.0], dtype=torch.float64)
    off = {loss: float((fitted(loss, x, y) - true).norm()) for loss in (squared_error, huber, smooth_l1)}
    assert off[squared_error] > 1
    assert max(off[huber], off[smooth_l1]) < 0.4
    assert float((fitted(lambda a, b: smooth_l1(a, b, 0.01), x, y) - true).norm()) < 0.1  # nearly the absolute value


@pytest.mark.system("losses-as-maximum-likelihood")
@pytest.mark.system("losses-as-maximum-likelihood", "gaussian")
def test_gaussian_likelihood_is_a_line_in_the_mse() -> None:
    """DLN-A.52: scipy's density; the values differ, the minimiser is the same (erratum: printed as equal values)."""
    yhat, y, sigma2 = normal(9), normal(9, seed=5), 0.37
    known = -stats.norm(yhat.numpy(), sigma2**0.5).logpdf(y.numpy())
    close(gaussian_nll(yhat, y, sigma2), torch.from_numpy(known))
    mse = squared_error(yhat, y).mean()
    line = 4.5 * math.log(2 * math.pi * sigma2) + 9 / (2 * sigma2) * mse
    close(summed_risk(gaussian_nll(yhat, y, sigma2)), line)
    x, y = torch.linspace(-1, 1, 30).double(), normal(30, seed=6)
    close(fitted(squared_error, x, y), fitted(lambda a, b: gaussian_nll(a, b, 0.37), x, y), loosen=1e4)  # two searches


@pytest.mark.system("losses-as-maximum-likelihood")
@pytest.mark.system("losses-as-maximum-likelihood", "categorical")
def test_cross_entropies_are_the_negative_log_likelihood_exactly() -> None:
    """DLN-A.62, DLD 1.6: Categorical and Bernoulli of torch.distributions."""
    z, y = normal(8, 3, seed=7), torch.arange(8) % 3
    close(summed_risk(cross_entropy(z, y)), -torch.distributions.Categorical(logits=z).log_prob(y).sum())
    hot = (y == 1).double()
    bernoulli = torch.distributions.Bernoulli(logits=z[:, 0])
    close(summed_risk(binary_cross_entropy(z[:, 0], hot)), -bernoulli.log_prob(hot).sum())


@pytest.mark.system("mse-loss")
@pytest.mark.system("l1-loss")
@pytest.mark.system("huber-and-smooth-l1")
def test_bad_input_is_refused() -> None:
    """(b) against (b, 1) would be broadcast to (b, b) in silence."""
    for loss in (*LOSSES, lambda a, b: gaussian_nll(a, b, 1.0), squared_distance):
        with pytest.raises(Mistake, match=r"differ in shape: \(4,\) and \(4, 1\)"):
            loss(torch.zeros(4), torch.zeros(4, 1))
    x = torch.zeros(2)
    for call, name in ((huber, "delta 0.0"), (smooth_l1, "beta 0.0"), (gaussian_nll, "sigma2 0.0")):
        with pytest.raises(Mistake, match=name):
            call(x, x, 0.0)
    assert per_example(squared_error(x, x)).shape == (2,)
