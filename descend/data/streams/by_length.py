"""Minibatches of texts of like length, so that little of a batch is padding.

    epoch e:   π_e as before, cut into pools of 64 groups; each pool sorted by length and cut into groups;
               the groups of a pool in a random order. What does not fill a group comes last, and is shuffled too

Every example still comes once an epoch, and what is in a group is still chance. A group is the whole batch of a step,
so micro-batches and processes share the same groups.
"""

from __future__ import annotations

import torch
from torch import Tensor

from descend.data.streams.arrays import Shuffled, generator

POOL = 64  # groups that are sorted together: long enough that a group's lengths are alike, short enough to stay random


class ByLength(Shuffled):
    """`length` (n) of each example; `group` examples make a step."""

    def __init__(
        self,
        arrays: dict[str, Tensor],
        length: Tensor,
        group: int,
        batch: int,
        seed: int = 0,
        rank: int = 0,
        world: int = 1,
    ):
        super().__init__(arrays, batch, seed, rank, world)
        self.length, self.group = length, group

    def epoch(self, e: int) -> tuple[Tensor, Tensor]:
        """π_e with like lengths side by side, kept until another epoch is asked for."""
        if self._epoch[0] != e:
            order, u = super().epoch(e)
            self._epoch = e, group_by_length(order, self.length, self.group, generator(self.seed, e, 1)), u
        return self._epoch[1:]


def group_by_length(order: Tensor, length: Tensor, group: int, random: torch.Generator) -> Tensor:
    """The rows of `order`, those of similar length in groups."""
    whole = len(order) // group * group
    found = []
    for pool in order[:whole].split(POOL * group):
        groups = pool[length[pool].argsort(stable=True)].view(-1, group)
        found.append(groups[torch.randperm(len(groups), generator=random)].flatten())
    return torch.cat([*found, order[whole:]])
