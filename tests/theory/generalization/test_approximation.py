"""Universal approximation: fits, floors and the polygon, against numpy's polynomials and closed forms."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
import torch

from descend.ops.activations import identity, sigmoid, tanh
from descend.theory.generalization.approximation import (
    fit_slope,
    fit_universal,
    interpolate_by_relu,
    polynomial_floor,
    sup_error,
)
from tests.close import close

LINE = torch.linspace(0, 1, 1601, dtype=torch.float64)[:, None]
PLANE = torch.cartesian_prod(*[torch.linspace(0, 1, 41, dtype=torch.float64)] * 2)
FINE = {1: torch.linspace(0, 1, 4001, dtype=torch.float64)[:, None]}
FINE[2] = torch.cartesian_prod(*[torch.linspace(0, 1, 131, dtype=torch.float64)] * 2)
"""Points that no fit has seen, for the sup error."""


def wave(x: torch.Tensor) -> torch.Tensor:
    return (2 * math.pi * x).sin().sum(-1) + x.square().sum(-1)


def error(units: int, activation: object, x: torch.Tensor, seed: int) -> float:
    random = torch.Generator().manual_seed(seed)
    g = fit_universal(wave, x, units, activation, random)  # type: ignore[arg-type]
    return sup_error(g, wave, FINE[x.shape[1]])


@pytest.mark.system("universal-approximation")
@pytest.mark.system("universal-approximation", "fitted", "width")
@pytest.mark.parametrize("activation", [sigmoid, tanh, torch.relu])
@pytest.mark.parametrize("x", [LINE, PLANE], ids=["line", "square"])
def test_the_sup_error_falls_with_width(activation: object, x: torch.Tensor) -> None:
    for seed in range(3):
        errors = [error(units, activation, x, seed) for units in (5, 20, 80, 320)]
        # down to what least squares with float64 resolves
        assert all(later < max(earlier, 1e-6) for earlier, later in pairwise(errors)), errors
        assert errors[-1] < 0.03 * errors[0]


@pytest.mark.system("universal-approximation", "fitted")
def test_the_output_has_no_bias() -> None:
    g = fit_universal(wave, LINE, 6, tanh, torch.Generator().manual_seed(0))
    assert (len(g.bias), len(g.output), g.weight.shape) == (6, 6, (6, 1))
    x = LINE[7]
    close(g(x), sum(a * torch.tanh(w @ x + b) for w, b, a in zip(g.weight, g.bias, g.output, strict=True)))


@pytest.mark.system("universal-approximation", "identity", "polynomial")
def test_a_polynomial_activation_stalls_at_the_best_polynomial() -> None:
    for degree, activation in ((1, identity), (2, torch.square), (3, lambda z: z**3 + z)):
        floor = polynomial_floor(wave, FINE[1][::5, 0], degree)
        few, many = error(20, activation, LINE, 0), error(320, activation, LINE, 1)
        assert floor <= few * (1 + 1e-9)
        assert few == pytest.approx(many, rel=1e-3)
        fitted = np.polynomial.Polynomial.fit(LINE[:, 0].numpy(), wave(LINE).numpy(), degree)
        x = FINE[1]
        assert many == pytest.approx(
            abs(fitted(x[:, 0].numpy()) - wave(x).numpy()).max(), rel=1e-3
        )  # numpy's least squares
    assert error(320, tanh, LINE, 0) < 1e-3 * polynomial_floor(wave, LINE[:, 0], 3)


@pytest.mark.system("universal-approximation", "polynomial")
def test_the_floor_is_chebyshevs() -> None:
    """x^n on [−1, 1] is 2^(1−n) from the nearest polynomial of lower degree; on [0, 1] that is 2^(1−2n)."""
    x = torch.linspace(0, 1, 801, dtype=torch.float64)
    for n in (2, 3, 4):
        found = polynomial_floor(lambda x, n=n: x[:, 0] ** n, x, n - 1)  # type: ignore[misc]
        assert found == pytest.approx(2.0 ** (1 - 2 * n), rel=1e-3)


@pytest.mark.system("universal-approximation", "constructed")
@pytest.mark.system("relu-linear-regions", "segments")
def test_the_polygon_interpolates() -> None:
    fine = torch.linspace(0, 1, 20_001, dtype=torch.float64)[:, None]

    def bent(x: torch.Tensor) -> torch.Tensor:
        return (3 * x[..., 0]).sin()

    def rough(x: torch.Tensor) -> torch.Tensor:
        """Lipschitz 1, with kinks at every scale seen here."""
        zigzag = [(x[..., 0] * 2.0**k).remainder(1.0).sub(0.5).abs().sub(0.5).abs() / 2.0**k for k in range(0, 14, 2)]
        return torch.stack(zigzag).sum(0) / len(zigzag)

    segments = [1, 2, 10, 100]
    for f, lipschitz in ((bent, 3.0), (rough, 1.0)):
        for n in segments:
            g = interpolate_by_relu(f, n)
            knots = torch.linspace(0, 1, n + 1, dtype=torch.float64)[:, None]
            assert torch.allclose(g(knots), f(knots), atol=1e-9)
            assert sup_error(g, f, fine) <= lipschitz / (2 * n) + 1e-12
    errors = torch.tensor([sup_error(interpolate_by_relu(bent, n), bent, fine) for n in segments])
    assert (errors <= 9 / 8 / torch.tensor(segments).square()).all()
    counts = torch.tensor([10.0, 20, 40, 80])
    assert fit_slope(counts, errors_of(bent, counts, fine)) == pytest.approx(-2, abs=0.02)
    assert fit_slope(counts, errors_of(rough, counts, fine)) > -1.3


def errors_of(f: object, counts: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    return torch.tensor([sup_error(interpolate_by_relu(f, int(n)), f, x) for n in counts])  # type: ignore[arg-type]


def test_slope() -> None:
    x = torch.tensor([1.0, 10.0, 100.0])
    assert fit_slope(x, 5 / x**1.5) == pytest.approx(-1.5)
