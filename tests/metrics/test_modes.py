"""Counting modes: the true distribution, a constant, a collapse and noise have known scores."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from descend.metrics.modes import Modes
from tests.close import close

ANGLES = 2 * math.pi * torch.arange(8) / 8
MU = 2 * torch.stack([ANGLES.cos(), ANGLES.sin()], dim=1)
JUDGE = Modes(MU, 0.02)
N = 8000


def around(modes: Tensor, seed: int = 0) -> Tensor:
    """N true samples, spread evenly over these modes."""
    noise = torch.randn(N, 2, generator=torch.Generator().manual_seed(seed))
    return MU[modes.repeat(N // len(modes))] + 0.02 * noise


def means(x: Tensor) -> dict[str, float]:
    scores = JUDGE(x)
    assert all(values.shape == (len(x),) for values in scores.values())
    return {name: float(values.double().mean()) for name, values in scores.items()}


def test_true_samples() -> None:
    """P(within 3σ) = 1 − exp(−9/2) in two dimensions: a Rayleigh distance."""
    scores = means(around(torch.arange(8)))
    expected = 1 - math.exp(-4.5)
    assert abs(scores["quality"] - expected) < 4 * math.sqrt(expected * (1 - expected) / N)
    assert scores["modes"] == 8
    close(torch.tensor(scores["overlap"]), torch.tensor(scores["quality"]))


def test_a_constant_generator() -> None:
    assert means(MU[3].expand(N, 2)) == {"quality": 1.0, "modes": 1.0, "overlap": 1 / 8}


@pytest.mark.parametrize("kept", [2, 4])
def test_collapse_to_some_modes(kept: int) -> None:
    scores = means(around(torch.arange(kept)))
    assert scores["modes"] == kept
    assert scores["quality"] > 0.98
    assert scores["overlap"] == kept / 8


def test_points_between_the_modes() -> None:
    assert means(torch.zeros(N, 2)) == {"quality": 0.0, "modes": 0.0, "overlap": 0.0}


def test_a_stray_point_does_not_cover_a_mode() -> None:
    x = around(torch.arange(4))
    x[0] = MU[7]
    assert means(x)["modes"] == 4
    x[: N // 8 // 10] = MU[7]  # a tenth of an equal share does
    assert means(x)["modes"] == 5


def test_overlap_is_one_minus_total_variation() -> None:
    x = torch.cat([MU[torch.tensor([0] * 5 + [1] * 2)], torch.zeros(1, 2)])  # shares 5/8, 2/8, and 1/8 that is no good
    shares = torch.tensor([5 / 8, 2 / 8, 0, 0, 0, 0, 0, 0, 1 / 8])
    wanted = torch.tensor([1 / 8] * 8 + [0])
    close(JUDGE(x)["overlap"][0], 1 - (shares - wanted).abs().sum() / 2)


def test_three_sigma_is_the_border() -> None:
    edge = MU[:1] + torch.tensor([[0.0599, 0.0], [0.0, 0.0599], [0.0601, 0.0], [0.045, 0.045]])
    good, nearest = JUDGE.assign(edge)
    assert good.tolist() == [True, True, False, False]
    assert nearest.tolist() == [0, 0, 0, 0]
