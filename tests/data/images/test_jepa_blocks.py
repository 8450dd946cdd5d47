"""Images with I-JEPA's places: drawn anew each epoch, the same however it is cut."""

from __future__ import annotations

import pytest
import torch

from descend.data.images.augment import Augment
from descend.data.images.jepa_blocks import LoadBlocks, TargetBlocks
from descend.data.images.labelled import Preprocessing
from descend.data.images.stream import Ahead
from descend.data.images.warp import Warp
from descend.data.streams.arrays import Shuffled
from descend.data.streams.batches import join_batches

PREPARE = Preprocessing((1, 8, 8), (0.0,), (1.0,))
BLOCKS = TargetBlocks(count=2, height=2, width=1)


def stream(batch: int) -> Ahead:
    x = torch.rand(6, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    load = LoadBlocks(x, Augment((Warp(turn=30.0),)), PREPARE, BLOCKS, (4, 4))
    return Ahead(Shuffled({"row": torch.arange(6)}, batch, chance=load.chance), load)


@pytest.mark.system("jepa")
@pytest.mark.system("jepa", "blocks")
def test_places_belong_to_the_image_and_the_epoch() -> None:
    whole, parts = stream(6), stream(3)
    seen = []
    for _ in range(3):
        batch = next(whole)
        other = join_batches([next(parts), next(parts)])
        assert all(torch.equal(batch[name], other[name]) for name in batch)
        assert batch["context"].shape == (6, 12)
        assert batch["targets"].shape == (6, 2, 2)
        seen.append(batch["targets"][batch["row"].argsort()])
    assert not torch.equal(seen[0], seen[1])
    assert BLOCKS.context((4, 4)) == 12
