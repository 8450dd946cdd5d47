"""Moving spots and pairs of frames: within the window, never the same frame, and where the spot should be."""

from __future__ import annotations

import pytest
import torch

from descend.data.streams.batches import join_batches
from descend.data.toys.moving import TimePairs, moving_spots
from descend.errors import Mistake


def sequences(frames: int = 9) -> torch.Tensor:
    return moving_spots(4, frames, 12, torch.Generator().manual_seed(0))


@pytest.mark.system("siamese-contrastive")
@pytest.mark.system("siamese-contrastive", "time-window")
@pytest.mark.parametrize("window", [1, 3, 8])
def test_sampled_positives_lie_within_the_window(window: int) -> None:
    batch = next(TimePairs(sequences(), window, batch=4000))
    gap = (batch["t1"] - batch["t2"]).abs()
    assert gap.min() == 1
    assert gap.max() == window
    assert batch["t2"].min() == 0
    assert batch["t2"].max() == 8
    data = sequences()
    for i in range(5):
        assert torch.equal(batch["x2"][i], data[batch["group"][i], batch["t2"][i]])


@pytest.mark.system("siamese-contrastive", "time-window")
def test_pairs_do_not_depend_on_how_a_step_is_split() -> None:
    whole, halves = TimePairs(sequences(), 2, 6), TimePairs(sequences(), 2, 3)
    ranks = [TimePairs(sequences(), 2, 6, 0, rank, 2) for rank in (0, 1)]
    next(whole), next(halves), next(halves), next(ranks[0]), next(ranks[1])
    state = whole.state_dict()
    batch = next(whole)
    again = TimePairs(sequences(), 2, 6)
    again.load_state_dict(state)
    others = [next(again), join_batches([next(halves), next(halves)]), join_batches([next(r) for r in ranks])]
    for other in others:
        assert all(torch.equal(batch[name], other[name]) for name in batch)


def test_the_spot_moves_across_in_equal_steps() -> None:
    x = sequences().clamp(min=0.2) - 0.2
    grid = torch.arange(12) + 0.5
    total = x.sum((2, 3, 4))
    across = (x.sum((2, 3)) * grid).sum(-1) / total
    down = (x.sum((2, 4)) * grid).sum(-1) / total
    steps = torch.stack([across.diff(dim=1), down.diff(dim=1)], dim=-1).norm(dim=-1)
    assert (steps[:, 2:-2] / steps[:, 2:-2].mean() - 1).abs().max() < 0.25


def test_windows_and_lengths_that_cannot_be() -> None:
    with pytest.raises(Mistake, match="window 9"):
        TimePairs(sequences(), 9, 4)
    with pytest.raises(Mistake, match="1 frames"):
        moving_spots(1, 1, 8, torch.Generator())
