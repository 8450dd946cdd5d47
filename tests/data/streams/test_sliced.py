"""Slices of a batch: together the batch, for micro-batches and for processes."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from descend.data.streams.sliced import Sliced
from descend.errors import Mistake
from tests.data.control.test_environments import through_json


class Numbers:
    """0..11, then 12..23, .."""

    def __init__(self) -> None:
        self.n = 0

    def __next__(self) -> dict[str, Tensor]:
        self.n += 12
        return {"x": torch.arange(self.n - 12, self.n)}

    def state_dict(self) -> dict[str, Any]:
        return {"n": self.n}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.n = state["n"]


def test_micro_batches_of_all_processes_are_the_batch() -> None:
    ranks = [Sliced(Numbers(), 12, accumulate=2, rank=r, world=3) for r in range(3)]
    for first in (0, 12):
        micro = [torch.cat([next(rank)["x"] for rank in ranks]) for _ in range(2)]
        assert torch.cat(micro).tolist() == list(range(first, first + 12))


def test_alone_it_changes_nothing() -> None:
    stream = Sliced(Numbers(), 12)
    assert [next(stream)["x"].tolist() for _ in range(2)] == [list(range(12)), list(range(12, 24))]


@pytest.mark.parametrize("taken", [0, 1, 2, 3])
def test_goes_on_from_any_slice(taken: int) -> None:
    stream = Sliced(Numbers(), 12, accumulate=3)
    for _ in range(taken):
        next(stream)
    again = Sliced(Numbers(), 12, accumulate=3)
    again.load_state_dict(through_json(stream.state_dict()))
    for _ in range(5):
        assert torch.equal(next(stream)["x"], next(again)["x"])


def test_a_batch_that_does_not_divide_is_named() -> None:
    with pytest.raises(Mistake, match="--batch 12 cannot be cut into 5 micro-batches"):
        Sliced(Numbers(), 12, accumulate=5)
