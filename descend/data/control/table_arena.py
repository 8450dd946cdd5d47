"""Whole episodes in a table of outcomes, all at once, from given seeds: what an environment's own copies would play.

The random numbers of an episode belong to its seed, whatever else is in the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from descend.ops.decisions.process import DecisionProcess
from descend.ops.decisions.walks import draw_states, take_step
from descend.seeds import generator

BLOCK = 64  # steps whose random numbers are drawn together


class TableArena:
    """`arena(act, seeds)` is the return of each episode (b), cut off after `limit` steps."""

    def __init__(self, process: DecisionProcess, limit: int):
        self.process, self.limit = process, limit

    def __call__(self, act: Callable[[Tensor], Tensor], seeds: Sequence[int]) -> Tensor:
        """`act` maps states (b) to actions (b)."""
        chances = [generator(int(seed)) for seed in seeds]
        state = draw_states(self.process, draw(chances, 1)[:, 0])
        total, running = torch.zeros(len(seeds), dtype=torch.float64), torch.arange(len(seeds))
        for step in range(self.limit):
            if step % BLOCK == 0:
                u = draw(chances, BLOCK)
            here = state[running]
            found = take_step(self.process, here, act(here), u[running, step % BLOCK])
            total[running] += found.reward
            state[running] = found.following
            running = running[~found.ended]
            if not len(running):
                break
        return total.float()


def draw(chances: Sequence[torch.Generator], count: int) -> Tensor:
    """Uniform numbers of each episode (b, count)."""
    return torch.stack([torch.rand(count, generator=chance, dtype=torch.float64) for chance in chances])
