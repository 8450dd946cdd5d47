"""Batches cut, chosen from and joined, also where examples differ in size (`descend.contracts.Batch`).

plain     x (n, ..)                                rows of x
ragged    x (m, ..) with x_owner (m), in order     all items of the chosen examples, their owners numbered anew
"""

from __future__ import annotations

import torch
from torch import Tensor

from descend.contracts import OWNER, Batch


def count_examples(batch: Batch) -> int:
    """The number of examples: the length of `ids`, or of any part with one row per example."""
    if "ids" in batch:
        return len(batch["ids"])
    return next((len(x) for name, x in batch.items() if not is_ragged(batch, name)), 0)


def is_ragged(batch: Batch, name: str) -> bool:
    """Whether a part has one row an item, not one per example."""
    return name.endswith(OWNER) or name + OWNER in batch


def take_examples(batch: Batch, rows: Tensor) -> Batch:
    """The examples of these rows, in their order; a row may be taken twice."""
    found = {}
    for name, x in batch.items():
        if not is_ragged(batch, name):
            found[name] = x[rows]
        elif not name.endswith(OWNER):
            items, found[name + OWNER] = find_items(batch[name + OWNER], rows, count_examples(batch))
            found[name] = x[items]
    return found


def slice_examples(batch: Batch, start: int, stop: int) -> Batch:
    """The examples start, .., stop − 1; of plain parts a view."""
    if any(name.endswith(OWNER) for name in batch):
        return take_examples(batch, torch.arange(start, min(stop, count_examples(batch))))
    return {name: x[start:stop] for name, x in batch.items()}


def join_batches(pieces: list[Batch]) -> Batch:
    """Pieces laid end to end, name by name; owners go on counting."""
    if len(pieces) == 1:
        return pieces[0]
    found = {name: torch.cat([piece[name] for piece in pieces]) for name in pieces[0]}
    sizes = torch.tensor([0, *(count_examples(piece) for piece in pieces)]).cumsum(0).tolist()
    for name in found:
        if name.endswith(OWNER):
            shifted = [piece[name] + size for piece, size in zip(pieces, sizes, strict=False)]
            found[name] = torch.cat(shifted)
    return found


def find_items(owner: Tensor, rows: Tensor, examples: int) -> tuple[Tensor, Tensor]:
    """Where the items of the chosen examples lie, and their owners numbered by the choice."""
    counts = torch.bincount(owner, minlength=examples)
    taken = counts[rows]
    new = torch.repeat_interleave(torch.arange(len(rows)), taken)
    within = torch.arange(len(new)) - (taken.cumsum(0) - taken)[new]
    return (counts.cumsum(0) - counts)[rows][new] + within, new
