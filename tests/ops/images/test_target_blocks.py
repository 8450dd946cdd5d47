"""I-JEPA's places: blocks inside the grid, a context that no block touches, equally many for every image."""

from __future__ import annotations

import pytest
import torch

from descend.errors import Mistake
from descend.ops.images.target_blocks import choose_context, place_blocks


@pytest.mark.system("jepa")
@pytest.mark.system("jepa", "blocks")
def test_blocks_are_rectangles_inside_the_grid_and_apart_from_the_context() -> None:
    random = torch.Generator().manual_seed(0)
    targets = place_blocks(torch.rand(200, 3, 2, generator=random), (5, 6), (2, 3))
    assert targets.shape == (200, 3, 6)
    rows, columns = targets // 6, targets % 6
    assert targets.min() == 0
    assert targets.max() == 29
    assert (rows.amax(-1) - rows.amin(-1) == 1).all()
    assert (columns.amax(-1) - columns.amin(-1) == 2).all()
    assert len(targets[:, 0, 0].unique()) == 4 * 4  # every place where a block fits
    context = choose_context(torch.rand(200, 30, generator=random), targets, 12)
    assert context.shape == (200, 12)
    for places, blocks in zip(context.tolist(), targets.flatten(1).tolist(), strict=True):
        assert len(set(places)) == 12
        assert not set(places) & set(blocks)


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(Mistake, match="blocks of 3×3 patches do not fit"):
        place_blocks(torch.rand(1, 1, 2), (2, 4), (3, 3))
    with pytest.raises(Mistake, match="only 0 are outside"):
        choose_context(torch.rand(1, 4), torch.tensor([[[0, 1, 2, 3]]]), 1)
