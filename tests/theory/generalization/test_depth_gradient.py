"""The product formula of backpropagation against autograd."""

from __future__ import annotations

import math

import pytest
import torch

from descend.theory.generalization.approximation import fit_slope
from descend.theory.generalization.depth_gradient import (
    SIGMOID_SLOPE,
    chain,
    delta_as_printed,
    first_delta,
    norm_bound,
    sigmoid_bound,
)
from tests.close import close


def draw(depth: int, scale: float) -> tuple[list[torch.Tensor], list[torch.Tensor], torch.Tensor, torch.Tensor]:
    """W_2 … W_L, the slopes of all layers, δ_L and δ_1 of a sigmoid net of 6 units, by autograd."""
    random = torch.Generator().manual_seed(depth)
    weights = [scale * torch.randn(6, 6, generator=random, dtype=torch.float64) for _ in range(depth)]
    zs, a = [], torch.randn(6, generator=random, dtype=torch.float64)
    for w in weights:
        zs.append((w @ (a - 0.5)).requires_grad_())
        a = zs[-1].sigmoid()
    deltas = torch.autograd.grad(a.square().sum(), zs)
    slopes = [(z.sigmoid() * (1 - z.sigmoid())).detach() for z in zs]
    return weights[1:], slopes, deltas[-1], deltas[0]


@pytest.mark.system("vanishing-exploding-in-depth")
@pytest.mark.system("vanishing-exploding-in-depth", "product", "quarter")
@pytest.mark.parametrize("depth", [2, 5, 12])
def test_the_product_is_backpropagation(depth: int) -> None:
    weights, slopes, last, first = draw(depth, 0.8)
    close(first_delta(weights, slopes[:-1], last), first)
    assert not torch.allclose(delta_as_printed(weights, slopes[1:], last), first, rtol=0.01)
    assert first.norm() <= norm_bound(weights, SIGMOID_SLOPE, last)
    assert max(float(slope.max()) for slope in slopes) <= SIGMOID_SLOPE


@pytest.mark.system("vanishing-exploding-in-depth", "sigmoid-explodes")
def test_sigmoid_gradients_explode_with_large_weights() -> None:
    """Units at z ≈ 0 whose weights are 8 times a rotation: the gradient doubles in every layer."""
    random = torch.Generator().manual_seed(0)
    growth = []
    for depth in (5, 10):
        weights = [8 * torch.linalg.qr(torch.randn(6, 6, generator=random).double()).Q for _ in range(depth)]
        z = first = torch.zeros(6).double().requires_grad_()
        for w in weights:
            z = w @ (z.sigmoid() - 0.5)
        (gradient,) = torch.autograd.grad(z[0], first)
        growth.append(float(gradient.norm()))
        assert growth[-1] == pytest.approx(chain(2.0, depth))
        assert growth[-1] == pytest.approx(sigmoid_bound(depth, 8))
    assert growth[1] > 1000


@pytest.mark.system("vanishing-exploding-in-depth", "gain", "factors")
@pytest.mark.parametrize("gain", [0.5, 1.5])
def test_the_slope_of_the_log_norm_is_the_log_of_the_gain(gain: float) -> None:
    """y = W_L … W_1 x with W = gain · rotation, through autograd."""
    depths, norms = torch.arange(1.0, 21), []
    for depth in range(1, 21):
        random = torch.Generator().manual_seed(depth)
        x = torch.ones(4, dtype=torch.float64, requires_grad=True)
        y = x
        for _ in range(depth):
            y = gain * torch.linalg.qr(torch.randn(4, 4, generator=random).double()).Q @ y
        norms.append(torch.autograd.grad(y[0], x)[0].norm())
    slope = fit_slope(depths.exp(), torch.stack(norms))
    assert slope == pytest.approx(math.log(gain))
    assert float(norms[-1]) == pytest.approx(chain(gain, 20))
