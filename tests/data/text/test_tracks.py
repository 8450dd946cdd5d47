"""Tracks: rows go on where they stopped, micro-batches are the batch, and the position is all of the state."""

from __future__ import annotations

import pytest
import torch

from descend.data.text.tracks import Tracks
from descend.errors import Mistake

TEXT = torch.arange(500)


@pytest.mark.system("truncated-bptt")
@pytest.mark.system("truncated-bptt", "stream")
def test_rows_go_on() -> None:
    stream = Tracks(TEXT, 8, 4, seed=0)
    before = next(stream)
    assert before["fresh"].all()
    for _ in range(stream.windows - 1):
        now = next(stream)
        assert torch.equal(now["x"][:, 0], before["y"][:, -1])
        assert torch.equal(now["y"], now["x"] + 1)
        assert not now["fresh"].any()
        before = now
    again = next(stream)
    assert again["fresh"].all()  # a new epoch


@pytest.mark.system("truncated-bptt")
@pytest.mark.system("truncated-bptt", "stream")
def test_micro_batches_and_resume() -> None:
    whole, parts = Tracks(TEXT, 8, 4, seed=1), Tracks(TEXT, 8, 4, seed=1, accumulate=2)
    for _ in range(20):
        batch, halves = next(whole), [next(parts), next(parts)]
        for name in batch:
            assert torch.equal(batch[name], torch.cat([half[name] for half in halves]))
    other = Tracks(TEXT, 8, 4, seed=1)
    other.load_state_dict(whole.state_dict())
    assert torch.equal(next(other)["x"], next(whole)["x"])


def test_too_little_text() -> None:
    with pytest.raises(Mistake, match="--batch 64 is larger than the data"):
        Tracks(TEXT, 8, 64, seed=0)
