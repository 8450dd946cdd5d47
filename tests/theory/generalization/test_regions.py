"""Linear regions: exact counts against brute force and closed forms."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch

from descend.theory.generalization.regions import (
    Layers,
    count_in_plane,
    count_on_grid,
    count_on_line,
    find_kinks,
    lines_regions,
    local_map,
    read_pattern,
)
from tests.close import close


def draw(sizes: list[int], seed: int) -> Layers:
    random = torch.Generator().manual_seed(seed)
    return [
        (torch.randn(m, n, generator=random).double() / n**0.5, 0.5 * torch.randn(m, generator=random).double())
        for n, m in pairwise(sizes)
    ]


def output(layers: Layers, x: torch.Tensor) -> torch.Tensor:
    for weight, bias in layers[:-1]:
        x = (x @ weight.T + bias).relu()
    return x @ layers[-1][0].T + layers[-1][1]


@pytest.mark.system("relu-linear-regions")
@pytest.mark.system("relu-linear-regions", "line")
@pytest.mark.parametrize("sizes", [[2, 8, 1], [2, 6, 6, 1], [3, 5, 5, 5, 2]])
def test_the_count_on_a_line_is_that_of_brute_force(sizes: list[int]) -> None:
    for seed in range(3):
        layers = draw(sizes, seed)
        start, end = -3 * torch.ones(sizes[0]).double(), 3 * torch.linspace(0.4, 1, sizes[0]).double()
        t = torch.linspace(0, 1, 20_001, dtype=torch.float64)[:, None]
        patterns = read_pattern(layers, start + t * (end - start))
        found = count_on_line(layers, start, end)
        assert found == 1 + int((patterns[1:] != patterns[:-1]).any(-1).sum())
        assert len(find_kinks(layers, start, end)) == found - 1
        if len(sizes) == 3:
            assert found <= sizes[1] + 1


@pytest.mark.system("relu-linear-regions", "affine")
def test_the_map_is_affine_inside_a_region() -> None:
    layers, random = draw([3, 7, 7, 2], 0), torch.Generator().manual_seed(1)
    for x in torch.randn(5, 3, generator=random).double():
        a, c = local_map(layers, x)
        close(a @ x + c, output(layers, x))
        near = x + 0.3 * torch.randn(2000, 3, generator=random).double()
        same = (read_pattern(layers, near) == read_pattern(layers, x)).all(-1)
        assert 10 < int(same.sum()) < 2000
        close(near[same] @ a.T + c, output(layers, near[same]))
        assert not torch.allclose(near[~same] @ a.T + c, output(layers, near[~same]))


@pytest.mark.system("relu-linear-regions", "plane")
def test_lines_in_general_position() -> None:
    for n in (2, 3, 6, 12):
        (weight, bias), _ = draw([2, n, 1], n)
        assert count_in_plane(weight, bias) == lines_regions(n) == 1 + n + n * (n - 1) / 2
    through_one_point = torch.randn(5, 2, generator=torch.Generator().manual_seed(0)).double()
    assert count_in_plane(through_one_point, torch.zeros(5).double()) <= lines_regions(5)
    with pytest.raises(ValueError, match="no corners"):
        count_in_plane(torch.ones(3, 2).double(), torch.arange(3.0).double())


@pytest.mark.system("relu-linear-regions", "plane", "slice")
def test_a_grid_finds_no_region_that_is_not_there() -> None:
    grid = torch.cartesian_prod(*[torch.linspace(-12, 12, 500, dtype=torch.float64)] * 2)
    layers = draw([2, 6, 1], 3)
    assert lines_regions(6) - 4 <= count_on_grid(layers, grid) <= lines_regions(6)
    deep = draw([4, 8, 8, 1], 0)
    axes = torch.linalg.qr(torch.randn(4, 2, generator=torch.Generator().manual_seed(2)).double()).Q
    assert lines_regions(8) < count_on_grid(deep, grid[:, :1] * axes[:, 0] + grid[:, 1:] * axes[:, 1])


@pytest.mark.system("relu-linear-regions", "equal-units")
def test_folding_layers_beat_width_at_equal_units() -> None:
    """With 2L units on a line: the folding network has 2^L regions, one layer at most 2L + 1, random ones fewer."""
    one = torch.ones(1, dtype=torch.float64)
    hidden = (torch.ones(2, 1).double(), torch.tensor([0.0, -0.5]).double())
    mixed = (torch.tensor([[2.0, -4.0], [2.0, -4.0]]).double(), hidden[1])
    for depth in (2, 4, 6):
        out = (torch.tensor([[2.0, -4.0]]).double(), 0 * one)
        deep = count_on_line([hidden, *[mixed] * (depth - 1), out], 0 * one, one)
        wide = max(count_on_line(draw([1, 2 * depth, 1], seed), -9 * one, 9 * one) for seed in range(5))
        assert deep == 2**depth
        assert wide <= 2 * depth + 1
        assert deep > wide or depth == 2
