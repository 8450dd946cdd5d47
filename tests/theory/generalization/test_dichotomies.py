"""Cover's count against one linear program for each labeling."""

from __future__ import annotations

import pytest
import torch

from descend.theory.generalization.dichotomies import (
    add_products,
    count_dichotomies,
    count_separable,
    estimate_share,
    separable_share,
)


@pytest.mark.system("covers-theorem")
@pytest.mark.system("covers-theorem", "programs")
@pytest.mark.parametrize(("points", "dimensions"), [(5, 1), (6, 2), (6, 3)])
def test_linear_programs_find_the_count(points: int, dimensions: int) -> None:
    random = torch.Generator().manual_seed(points)
    x = torch.randn(points, dimensions, generator=random, dtype=torch.float64)
    assert count_separable(x) == count_dichotomies(points, dimensions + 1)


@pytest.mark.system("covers-theorem", "half")
def test_half_at_twice_the_dimension() -> None:
    for n in (1, 2, 7, 30):
        assert separable_share(2 * n, n) == 0.5
        assert separable_share(n, n) == 1
        assert separable_share(n + 1, n) < 1
    assert separable_share(400, 10) < 1e-90
    assert count_dichotomies(20, 3) > 20  # DLN: only about N


@pytest.mark.system("covers-theorem", "sampled")
@pytest.mark.parametrize("seed", range(3))
def test_random_labelings_are_separable_as_often(seed: int) -> None:
    """4 dimensions and a bias; at P = 10 one half."""
    random, draws = torch.Generator().manual_seed(seed), 150
    for points in (7, 10, 14):
        expected = separable_share(points, 5)
        x = torch.randn(points, 4, generator=random, dtype=torch.float64)
        found = estimate_share(x, draws, random)
        assert abs(found - expected) < 4 * (expected * (1 - expected) / draws) ** 0.5


@pytest.mark.system("covers-theorem", "expansion")
@pytest.mark.parametrize("seed", range(3))
def test_a_non_linear_expansion_raises_the_share(seed: int) -> None:
    """2 inputs, with their products 5: the share becomes that of five dimensions and a bias."""
    random, draws = torch.Generator().manual_seed(seed), 120
    x = torch.randn(12, 2, generator=random, dtype=torch.float64)
    wide = add_products(x)
    assert wide.shape == (12, 5)
    plain, expanded = (estimate_share(given, draws, torch.Generator().manual_seed(seed)) for given in (x, wide))
    assert separable_share(12, 3) < 0.04
    assert separable_share(12, 6) == 0.5
    assert plain < 0.15
    assert abs(expanded - 0.5) < 4 * 0.5 / draws**0.5
