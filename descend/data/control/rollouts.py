"""Rollouts: a stretch of every environment, played by the policy as it is now.

    a_t ~ π(·|s_t),   (s_{t+1}, r_t) from the environment,   t = 1..length

On-policy learning may use a batch only for the policy that made it, so each is played when it is asked for, after the
steps on the one before. Episodes run on from batch to batch; only the seams inside a batch are marked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from descend.data.control.environments import Environments, Rows
from descend.data.streams.arrays import generator


class Rollouts:
    """A stream of batches (copies, length, ..), and the first axis is the environment.

    `act` maps observations (b, o) and a generator to actions (b). `look_back` is given each whole rollout (observation,
    action, reward, next, terminated, truncated), before it is cut into slices, and returns what is learned from:
    advantages need the policy that played, and all of the rollout. A batch's `draw` says how many came before it.
    Random numbers are a function of (seed, draw), so they need no state.
    """

    def __init__(
        self,
        envs: Environments,
        act: Callable[[Tensor, torch.Generator], Tensor],
        look_back: Callable[[dict[str, Tensor]], dict[str, Tensor]],
        length: int,
    ):
        self.envs, self.act, self.look_back, self.length = envs, act, look_back, length
        self.draw = 0

    @torch.no_grad()
    def __next__(self) -> dict[str, Tensor]:
        chance = generator(self.envs.seed, self.draw)
        arrays: Rows = {}
        for t in range(self.length):
            rows = self.envs.step(self.act(torch.from_numpy(self.envs.observation), chance).numpy())
            if not t:
                arrays = {k: np.empty((len(v), self.length, *v.shape[1:]), v.dtype) for k, v in rows.items()}
            for name, array in arrays.items():
                array[:, t] = rows[name]
        rollout = {name: torch.from_numpy(array) for name, array in arrays.items()}
        batch, copies = dict(self.look_back(rollout)), len(self.envs.envs)
        batch["draw"] = torch.full((copies,), self.draw)
        batch["ids"] = torch.arange(copies)
        self.draw += 1
        return batch

    def state_dict(self) -> dict[str, Any]:
        return {"draw": self.draw, "envs": self.envs.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.draw = state["draw"]
        self.envs.load_state_dict(state["envs"])
