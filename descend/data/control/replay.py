"""Experience replay: remember transitions, learn from a uniform sample of them.

    D ← D ∪ {(s, a, r, s')},   the oldest goes when D is full;      (s, a, r, s') ~ U(D)

Steps that follow one another are alike; drawn from a large memory they are nearly independent, and each is used many
times. The behaviour policy is ε-greedy: with probability ε(n) a random action, else argmax_a Q(s, a), n steps in. Where
a goal is far, single random actions cancel out and never find it: held for h steps each (a free copy begins with
probability ε / (h − ε (h − 1)), so that the share of random steps stays ε), they go somewhere.

Systems: replay-buffer
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from descend.data.control.environments import Environments, Rows
from descend.errors import Mistake
from descend.ranges import Count, Share, Whole


class ReplayBuffer:
    """A ring of `capacity` rows of named arrays: row number n lives in slot n mod capacity."""

    def __init__(self, capacity: int):
        self.capacity = capacity
        self.added = 0
        self.arrays: Rows = {}  # allocated by the first rows, which tell the shapes

    @property
    def size(self) -> int:
        return min(self.added, self.capacity)

    def add(self, rows: Rows) -> None:
        """Append rows (the first axis); when full, each takes the place of the oldest."""
        if not self.arrays:
            self.arrays = {k: np.zeros((self.capacity, *v.shape[1:]), v.dtype) for k, v in rows.items()}
        count = len(next(iter(rows.values())))
        slots = (self.added + np.arange(count)) % self.capacity
        for name, array in self.arrays.items():
            array[slots] = rows[name]
        self.added += count

    def sample(self, count: int, rng: np.random.Generator) -> Rows:
        """`count` rows, each uniform over the memory and independent of the others; `ids` are their numbers."""
        slots = rng.integers(self.size, size=count)
        newest = self.added - 1
        return {k: v[slots] for k, v in self.arrays.items()} | {"ids": newest - (newest - slots) % self.capacity}

    def state_dict(self) -> dict[str, Any]:
        return {"added": self.added, "arrays": {k: v[: self.size].copy() for k, v in self.arrays.items()}}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        saved = {k: np.asarray(v) for k, v in state["arrays"].items()}
        held = len(next(iter(saved.values()), ()))
        if held != min(state["added"], self.capacity):
            raise Mistake(f"the checkpoint's replay memory holds {held} rows; resume with the same --data.capacity")
        self.added = state["added"]
        self.arrays = {k: np.zeros((self.capacity, *v.shape[1:]), v.dtype) for k, v in saved.items()}
        for name, array in saved.items():
            self.arrays[name][:held] = array


@dataclass(frozen=True)
class Explore:
    """ε falls along a straight line from `first` to `last`."""

    warmup: Whole = 1000
    """Environment steps of random actions before the first batch."""
    first: Share = 1.0
    """ε at the beginning."""
    last: Share = 0.05
    """ε at the end of the line, and from there on."""
    steps: Count = 10_000
    """Environment steps from the first ε to the last."""
    hold: Count = 1
    """h: steps for which a random action is held."""

    def __call__(self, n: int) -> float:
        return self.first + (self.last - self.first) * min(n / self.steps, 1.0)

    def begin(self, epsilon: float) -> float:
        """The probability that a copy which holds no action begins a random one."""
        return epsilon / (self.hold - epsilon * (self.hold - 1))


class Replay:
    """A stream: every batch takes one ε-greedy step in each environment, then samples the memory.

    `q` maps observations (b, o) to action values (b, actions). A batch's `draw` says how many came before it.
    Random numbers are a function of (seed, draw), so they need no state.
    """

    def __init__(
        self,
        envs: Environments,
        q: Callable[[Tensor], Tensor],
        buffer: ReplayBuffer,
        explore: Explore,
        batch: int,
    ):
        self.envs, self.q, self.buffer, self.explore, self.batch = envs, q, buffer, explore, batch
        self.draw = 0
        self.held = np.zeros(len(envs.envs), np.int64)  # the random action of each copy, and the steps left of it
        self.left = np.zeros(len(envs.envs), np.int64)

    def __next__(self) -> dict[str, Tensor]:
        rng = np.random.default_rng((self.envs.seed, self.draw))
        while self.envs.steps < self.explore.warmup:
            self._step(1.0, rng)
        self._step(self.explore(self.envs.steps), rng)
        rows = self.buffer.sample(self.batch, rng)
        batch = {name: torch.from_numpy(array) for name, array in rows.items()}
        batch["draw"] = torch.full((self.batch,), self.draw)
        self.draw += 1
        return batch

    @torch.no_grad()
    def _step(self, epsilon: float, rng: np.random.Generator) -> None:
        q = self.q(torch.from_numpy(self.envs.observation))
        count, choices = q.shape
        greedy, anything = q.argmax(-1).numpy(), rng.integers(choices, size=count)
        begins = (rng.random(count) < self.explore.begin(epsilon)) & (self.left == 0)
        self.held, self.left = np.where(begins, anything, self.held), np.where(begins, self.explore.hold, self.left)
        self.buffer.add(self.envs.step(np.where(self.left > 0, self.held, greedy)))
        self.left = np.maximum(self.left - 1, 0)

    def state_dict(self) -> dict[str, Any]:
        parts = {"draw": self.draw, "envs": self.envs.state_dict(), "buffer": self.buffer.state_dict()}
        return parts | {"held": self.held.copy(), "left": self.left.copy()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.draw = state["draw"]
        self.envs.load_state_dict(state["envs"])
        self.buffer.load_state_dict(state["buffer"])
        if "held" in state:  # checkpoints of the last release hold no action for longer than a step
            self.held, self.left = np.asarray(state["held"]), np.asarray(state["left"])
