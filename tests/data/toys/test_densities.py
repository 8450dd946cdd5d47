"""Densities in the plane: what is sampled is what is evaluated, and both are what they say."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.integrate import quad
from sklearn.datasets import make_moons

from descend.data.streams.arrays import generator
from descend.data.toys.densities import (
    Checkerboard,
    Density,
    Moons,
    Pinwheel,
    cover,
    entropy,
    grid_of_gaussians,
    ring_of_gaussians,
)
from descend.errors import Mistake
from tests.close import close

ALL = [Moons(), Checkerboard(), Pinwheel(), ring_of_gaussians(), grid_of_gaussians(9, 2.0, 0.2)]


@pytest.mark.parametrize("density", ALL, ids=lambda d: type(d).__name__)
def test_integrates_to_one_and_its_samples_have_its_entropy(density: Density) -> None:
    x, area = cover(density.box, 240)
    assert abs(float(density.log_prob(x).exp().sum() * area) - 1) < 1e-6
    nll = -density.log_prob(density.sample(10_000, generator(0)))
    assert abs(float(nll.mean()) - entropy(density)) < 4 * float(nll.std()) / 100 + 1e-6


def test_moons_are_those_of_scikit_learn() -> None:
    """Its likelihood of scikit-learn's points, and the integral along the arcs by scipy."""
    moons = Moons(0.1)
    theirs = torch.tensor(make_moons(4000, noise=0.1, random_state=0)[0])
    nll = -moons.log_prob(theirs)
    assert abs(float(nll.mean()) - entropy(moons)) < 4 * float(nll.std()) / 4000**0.5
    x = torch.tensor([[0.3, 0.9], [1.0, -0.45], [0.5, 0.25], [-1.1, -0.1]], dtype=torch.float64)

    def integrate(at: list[float]) -> float:
        arc = [(np.cos, np.sin), (lambda t: 1 - np.cos(t), lambda t: 0.5 - np.sin(t))]
        parts = [
            quad(
                lambda t, a=a, b=b: math.exp(-((at[0] - a(t)) ** 2 + (at[1] - b(t)) ** 2) / 0.02),
                0,
                math.pi,
                epsabs=1e-13,
                points=[0.5, 1.0, 1.5, 2.0, 2.5],
            )[0]
            for a, b in arc
        ]
        return math.log(sum(parts) / (2 * math.pi * 2 * math.pi * 0.01))

    close(moons.log_prob(x), torch.tensor([integrate(point) for point in x.tolist()], dtype=torch.float64), loosen=10)


def test_entropy_of_moons_and_of_a_board() -> None:
    """1.0076 is the least negative log-likelihood of moons with noise 0.1; a board's is the logarithm of its area."""
    assert round(entropy(Moons(0.1)), 4) == 1.0076
    assert entropy(Checkerboard()) == pytest.approx(math.log(8), abs=1e-6)


def test_a_point_beside_the_board_is_impossible() -> None:
    log_p = Checkerboard().log_prob(torch.tensor([[-1.5, -1.5], [-0.5, -1.5], [3.0, 3.0]]))
    assert log_p.exp().tolist() == [0.125, 0.0, 0.0]


def test_a_grid_needs_a_square_number() -> None:
    with pytest.raises(Mistake, match=r"--data\.modes 8: a grid needs a square number, e\.g\. 4 or 9"):
        grid_of_gaussians(8)
