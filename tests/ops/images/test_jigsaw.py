"""The jigsaw: every permutation can be undone, all are drawn, and nothing but the places changes."""

from __future__ import annotations

import pytest
import torch

from descend.errors import Mistake
from descend.ops.images.jigsaw import cut, invert, join, permutations, reorder


@pytest.mark.system("pirl")
@pytest.mark.system("pirl", "invertible")
@pytest.mark.parametrize("grid", [1, 2, 3])
def test_a_permutation_is_undone_by_its_inverse(grid: int) -> None:
    x = torch.randn(5, 3, 12, 6 * grid)
    order = permutations(torch.rand(5, grid**2))
    pieces = cut(x, grid)
    mixed = reorder(pieces, order)
    assert torch.equal(join(pieces), x)
    assert torch.equal(join(reorder(mixed, invert(order))), x)
    assert torch.equal(mixed[2, 0], pieces[2, order[2, 0]])
    if grid > 1:
        assert not torch.equal(join(mixed), x)


def test_permutations_are_all_equally_likely() -> None:
    order = permutations(torch.rand(6000, 3, generator=torch.Generator().manual_seed(0)))
    kinds, counts = order.unique(dim=0, return_counts=True)
    assert len(kinds) == 6
    assert (counts - 1000).abs().max() < 120  # four standard deviations


def test_pieces_are_equal() -> None:
    with pytest.raises(Mistake, match="8×8 cannot be cut into 3×3"):
        cut(torch.zeros(1, 1, 8, 8), 3)
