"""A measure of disentangling, and estimates of the intrinsic dimension, where the truth is known."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from descend.errors import Mistake
from descend.metrics.disentangling import disentangling, linear_dimension, neighbour_dimension, unit_moves
from tests.close import close

MIX = torch.randn(3, 12, dtype=torch.float64, generator=torch.Generator().manual_seed(9))


def make(factors: Tensor) -> Tensor:
    """Twelve observed numbers of three factors."""
    return torch.sinh(factors @ MIX)


def invert(x: Tensor) -> Tensor:
    return torch.asinh(x) @ torch.linalg.pinv(MIX)


def draw(seed: int) -> Tensor:
    return torch.rand(300, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)) * 2 - 1


@pytest.mark.system("disentangling-measure")
@pytest.mark.system("disentangling-measure", "moves", "known-inverse", "rotation")
@pytest.mark.parametrize("seed", range(3))
def test_the_known_inverse_scores_one_and_a_rotation_less(seed: int) -> None:
    factors = draw(seed)
    moves = unit_moves(invert, make, factors)
    close(moves.diagonal(), ((factors.roll(1, 0) - factors) / factors.std(0)).abs().mean(0))
    assert (moves - moves.diagonal().diag()).abs().max() < 1e-9
    assert disentangling(moves) == pytest.approx(1)
    other = lambda x: invert(x)[:, [2, 0, 1]] * torch.tensor([-3.0, 0.1, 2.0], dtype=torch.float64)
    assert disentangling(unit_moves(other, make, factors)) == pytest.approx(1)
    noise = torch.randn(3, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(seed + 10))
    rotation, _ = torch.linalg.qr(noise)
    assert disentangling(unit_moves(lambda x: invert(x) @ rotation, make, factors)) < 0.8
    assert disentangling(torch.ones(3, 3)) == pytest.approx(0)


def test_bad_input() -> None:
    with pytest.raises(Mistake, match="at least 2 of both"):
        disentangling(torch.ones(1, 3))
    with pytest.raises(Mistake, match="at least 10"):
        neighbour_dimension(torch.rand(4, 2))


@pytest.mark.system("manifold-hypothesis")
@pytest.mark.system("manifold-hypothesis", "neighbours")
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("d", [1, 2, 4])
def test_the_estimate_is_the_number_of_factors(d: int, seed: int) -> None:
    """Curved manifolds in 20 dimensions, of 1, 2 and 4 uniform factors."""
    random = torch.Generator().manual_seed(seed)
    factors = torch.rand(1500, d, dtype=torch.float64, generator=random)
    mix = torch.randn(d, 20, dtype=torch.float64, generator=random)
    x = torch.sin(factors @ mix) + factors @ torch.randn(d, 20, dtype=torch.float64, generator=random)
    assert round(neighbour_dimension(x)) == d


@pytest.mark.system("manifold-hypothesis")
@pytest.mark.system("manifold-hypothesis", "linear")
@pytest.mark.parametrize("d", [1, 3, 6])
def test_pca_finds_a_flat_one(d: int) -> None:
    random = torch.Generator().manual_seed(d)
    mix = torch.linalg.qr(torch.randn(20, d, dtype=torch.float64, generator=random)).Q.T
    x = torch.randn(500, d, dtype=torch.float64, generator=random) @ mix
    assert linear_dimension(x, 0.999) == d
    assert linear_dimension(torch.randn(500, 20, generator=random), 0.999) == 20
