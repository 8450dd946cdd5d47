"""Minibatches of texts of like length, so that little of a batch is padding.

    epoch e:   π_e as before, cut into pools of 64 groups; each pool sorted by length and cut into groups;
               the groups of a pool in a random order. What does not fill a group comes last, and is shuffled too

Every example still comes once an epoch, and what is in a group is still chance. A group is the whole batch of a step,
so micro-batches and processes share the same groups.

Where there are classes, length may tell them apart (spam is long), and a group of like length would be of one class. So
each class is sorted by itself, and a group takes the same quantiles of every class:

    example i has rank r_i among the n_c of its class c:   sorted by (r_i + ½) / n_c, not by length

A group then has the class shares of its pool.
"""

from __future__ import annotations

import torch
from torch import Tensor

from descend.data.streams.arrays import Shuffled, generator

POOL = 64  # groups that are sorted together: long enough that a group's lengths are alike, short enough to stay random


class ByLength(Shuffled):
    """`length` (n) of each example, and its class (n) where there are classes; `group` examples make a step."""

    def __init__(
        self,
        arrays: dict[str, Tensor],
        length: Tensor,
        group: int,
        batch: int,
        seed: int = 0,
        rank: int = 0,
        world: int = 1,
        classes: Tensor | None = None,
    ):
        super().__init__(arrays, batch, seed, rank, world)
        self.length, self.group, self.classes = length, group, classes

    def epoch(self, e: int) -> tuple[Tensor, Tensor]:
        """π_e with like lengths side by side, kept until another epoch is asked for."""
        if self._epoch[0] != e:
            order, u = super().epoch(e)
            random = generator(self.seed, e, 1)
            self._epoch = e, group_by_length(order, self.length, self.group, random, self.classes), u
        return self._epoch[1:]


def group_by_length(
    order: Tensor, length: Tensor, group: int, random: torch.Generator, classes: Tensor | None = None
) -> Tensor:
    """The rows of `order`, those of similar length in groups; every class in every group where there are classes."""
    whole = len(order) // group * group
    found = []
    for pool in order[:whole].split(POOL * group):
        key = length[pool] if classes is None else quantile_in_class(length[pool], classes[pool])
        groups = pool[key.argsort(stable=True)].view(-1, group)
        found.append(groups[torch.randperm(len(groups), generator=random)].flatten())
    return torch.cat([*found, order[whole:]])


def quantile_in_class(length: Tensor, classes: Tensor) -> Tensor:
    """(r_i + ½) / n_c: where each length stands among those of its class, between 0 and 1."""
    order = length.argsort(stable=True)
    order = order[classes[order].argsort(stable=True)]  # class by class, each by length
    _, number, count = classes[order].unique_consecutive(return_inverse=True, return_counts=True)
    rank = torch.arange(len(order)) - (count.cumsum(0) - count)[number]
    return torch.empty(len(order), dtype=torch.float64).scatter_(0, order, (rank.double() + 0.5) / count[number])
