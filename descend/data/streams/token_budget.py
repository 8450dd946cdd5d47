"""Minibatches of a number of tokens, not of examples: those of like length together, as many as the budget holds.

    ℓ_i = max over the sides (source, target) of the tokens of example i
    |B| · max_{i ∈ B} ℓ_i ≤ budget                        so neither side of a batch has more, padding included

    epoch e:   π_e; pools of 64 batches' worth of it, each sorted by ℓ and cut into the longest runs that fit;
               what is left of a pool goes into the next one; the batches in a random order

Every example comes once an epoch. WMT's batches held about 25,000 source and as many target tokens (DLN). A batch is
the whole of a step: micro-batches and processes take pieces of it, so the batches are the same however many there are,
and the state is which batch of which epoch comes next.

Systems: length-bucketed-batches
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from descend.contracts import Batch
from descend.data.streams.arrays import with_ids
from descend.data.streams.batches import take_examples
from descend.errors import Mistake
from descend.seeds import generator

POOL = 64  # batches' worth of examples that are sorted together


class TokenBudget:
    """An endless stream of such batches; `lengths` (n, sides), `parts` micro-batches a step.

    `trim` takes the padding off that no row of a batch needs.
    """

    def __init__(
        self,
        arrays: dict[str, Tensor],
        lengths: Tensor,
        budget: int,
        seed: int = 0,
        parts: int = 1,
        rank: int = 0,
        world: int = 1,
        trim: Callable[[Batch], Batch] = lambda batch: batch,
    ):
        self.arrays, n = with_ids(arrays)
        if not n:
            raise Mistake("the data is empty: there is no example to train on; check --data.path")
        check_lengths(lengths, self.arrays["ids"], budget)
        self.lengths, self.budget, self.seed, self.trim = lengths, budget, seed, trim
        self.parts, self.rank, self.world = parts, rank, world
        self.place = {"epoch": 0, "batch": 0, "part": 0}
        self._plan: tuple[int, list[Tensor]] = (-1, [])
        fewest = min(len(rows) for rows in self.plan(0))
        if fewest < parts * world:
            raise Mistake(
                f"--data.budget {budget}: a batch has as few as {fewest} examples, too few for {parts} micro-batches "
                f"of {world} processes; raise the budget"
            )

    def plan(self, epoch: int) -> list[Tensor]:
        """The rows of each batch of an epoch; kept until another epoch is asked for."""
        if self._plan[0] != epoch:
            self._plan = epoch, plan_batches(self.lengths, self.budget, generator(self.seed, epoch))
        return self._plan[1]

    def __next__(self) -> Batch:
        batches = self.plan(self.place["epoch"])
        rows = batches[self.place["batch"]]
        pieces = self.parts * self.world
        piece = self.place["part"] * self.world + self.rank
        mine = rows[piece * len(rows) // pieces : (piece + 1) * len(rows) // pieces]
        self.advance(len(batches))
        return self.trim(take_examples(self.arrays, mine))

    def advance(self, batches: int) -> None:
        """To the next piece, batch or epoch."""
        place = self.place
        done = place["part"] + 1 == self.parts
        place["part"] = 0 if done else place["part"] + 1
        place["batch"] += done
        if place["batch"] == batches:
            place["epoch"], place["batch"] = place["epoch"] + 1, 0

    def padding(self) -> float:
        """The share of the first epoch's numbers that is padding."""
        cells = sum(len(rows) * int(self.lengths[rows].amax(0).sum()) for rows in self.plan(0))
        return 1 - int(self.lengths.sum()) / cells

    def state_dict(self) -> dict[str, Any]:
        return dict(self.place)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        if not state["batch"] < len(self.plan(state["epoch"])) or not state["part"] < self.parts:
            raise Mistake(
                f"the checkpoint is at batch {state['batch']} of an epoch, which this data does not have; "
                f"resume with the data, the budget and the micro-batches that the run was started with"
            )
        self.place = {name: state[name] for name in self.place}


def check_lengths(lengths: Tensor, ids: Tensor, budget: int) -> None:
    """Refuse an example that fits into no batch."""
    if budget < 1:
        raise Mistake(f"--data.budget {budget}: a batch needs at least 1 token")
    longest = lengths.amax(1)
    if len(wrong := (longest > budget).nonzero()):
        row = int(wrong[0])
        raise Mistake(
            f"example {int(ids[row])} has {int(longest[row])} tokens on one side and fits into no batch of "
            f"--data.budget {budget}; raise it, or leave long ones out by --data.longest"
        )


def plan_batches(lengths: Tensor, budget: int, random: torch.Generator) -> list[Tensor]:
    """The rows of each batch of an epoch, in the order in which they come."""
    key, other = lengths.amax(1), lengths.sum(1)
    order = torch.randperm(len(lengths), generator=random)
    pool = key[order].cumsum(0) // (POOL * budget)
    found: list[Tensor] = []
    rest = order[:0]
    for rows in order.split(pool.unique_consecutive(return_counts=True)[1].tolist()):
        rows = torch.cat([rest, rows])
        rows = rows[other[rows].argsort(stable=True)]
        rows = rows[key[rows].argsort(stable=True)]
        *whole, rest = cut_by_budget(rows, key, budget)
        found += whole
    found = even_out(found, rest, key, budget)
    return [found[i] for i in torch.randperm(len(found), generator=random).tolist()]


def cut_by_budget(rows: Tensor, key: Tensor, budget: int) -> list[Tensor]:
    """Rows sorted by length, cut into the longest runs whose count times the last length is within the budget."""
    sizes, found, start = key[rows].tolist(), [], 0
    while start < len(sizes):
        size = lambda stop, start=start: (stop - start) * sizes[stop - 1]
        stop = bisect_right(range(start + 1, len(sizes) + 1), budget, key=size) + start
        found.append(rows[start:stop])
        start = stop
    return found


def even_out(whole: list[Tensor], last: Tensor, key: Tensor, budget: int) -> list[Tensor]:
    """The last batch of an epoch is short: it takes some of the longest examples of the one before it."""
    if not whole:
        return [last]
    both = torch.cat([whole[-1], last])
    both = both[key[both].argsort(stable=True)]
    count = min(budget // int(key[both[-1]]), (len(both) + 1) // 2)
    if count <= len(last):
        return [*whole, last]
    return [*whole[:-1], both[:-count], both[-count:]]
