"""The stream of hidden patches: a function of seed and place."""

from __future__ import annotations

import pytest
import torch

from descend.data.images.hidden_patches import HiddenPatches, Hide, Hiding, hidden_once
from descend.data.streams.arrays import Shuffled
from descend.errors import Mistake
from descend.nn.patches import patchify


def hide() -> Hide:
    return Hide(Hiding(0.4, 2), 2, lambda patches: (patches.mean(-1) > 0).long())


def stream(batch: int, rank: int = 0, world: int = 1) -> HiddenPatches:
    x = torch.randn(10, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    return HiddenPatches(Shuffled({"x": x}, batch, 3, rank, world), hide(), 3, rank, world)


@pytest.mark.system("beit")
def test_tokens_and_masks() -> None:
    batch = next(stream(4))
    assert batch["hide"].shape == batch["y"].shape == (4, 16)
    assert torch.equal(batch["y"], (patchify(batch["x"], 2).mean(-1) > 0).long())
    assert 0 < batch["hide"].sum(dim=1).min() <= batch["hide"].sum(dim=1).max() < 16


def test_however_it_is_cut_or_resumed() -> None:
    whole, halves = stream(8), stream(4)
    first, second = next(whole), next(whole)
    parts = [next(halves) for _ in range(4)]
    for name in ("hide", "y", "ids"):
        assert torch.equal(first[name], torch.cat([p[name] for p in parts[:2]]))
        assert torch.equal(second[name], torch.cat([p[name] for p in parts[2:]]))
    resumed = stream(8)
    start = stream(8)
    next(start)
    resumed.load_state_dict(start.state_dict())
    assert torch.equal(next(resumed)["hide"], second["hide"])
    assert not torch.equal(first["hide"], second["hide"])
    ranks = [next(stream(8, rank, 2)) for rank in (0, 1)]
    assert torch.equal(torch.cat([r["hide"] for r in ranks]), first["hide"])


def test_once_and_for_all() -> None:
    batches = [{"x": torch.randn(3, 1, 8, 8), "ids": torch.arange(3)}]
    assert torch.equal(hidden_once(batches, hide())[0]["hide"], hidden_once(batches, hide())[0]["hide"])
    with pytest.raises(Mistake, match="share is in"):
        Hiding(1.0)
