"""Whole episodes: each batch is one episode of every copy, from its first state to its last.

    s_0, a_0, r_0, s_1, ..   until the world or a time limit ends it,   a_t ~ π(·|s_t)

A return is known only when the episode is over, and belongs to the policy that played all of it. Episode e of copy i
begins with a seed that is a function of (seed, i, e), and nothing is open between two batches: the state is a few
numbers. Copies whose episode is over wait, so a batch lasts as long as its longest episode.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from descend.data.control.environments import TRAIN, World, episode_seed
from descend.data.streams.arrays import generator
from descend.errors import Mistake


class Step(NamedTuple):
    """One step of one copy."""

    observation: np.ndarray
    action: np.ndarray
    reward: np.float32
    next: np.ndarray
    terminated: bool
    truncated: bool


class WholeEpisodes:
    """A stream of batches (copies, longest of them, ..): `real` (copies, longest of them) says where one still ran.

    `act` maps observations (b, o) and a generator to actions (b). `look_back` is given all episodes (observation,
    action, reward, next, terminated, truncated, real), before they are cut into slices. `longest` is the time limit, 0
    the environment's own. `played` counts environment steps, over all batches.
    """

    def __init__(
        self,
        name: str,
        copies: int,
        seed: int,
        act: Callable[[Tensor, torch.Generator], Tensor],
        look_back: Callable[[dict[str, Tensor]], dict[str, Tensor]],
        longest: int = 0,
    ):
        self.name, self.seed, self.act, self.look_back, self.longest = name, seed, act, look_back, longest
        self.envs = [World(name, longest) for _ in range(copies)]
        self.draw = self.steps = 0
        self.finished: list[tuple[int, float]] = []  # (environment steps so far, return) of each episode
        self.lengths: list[int] = []  # its steps

    @torch.no_grad()
    def __next__(self) -> dict[str, Tensor]:
        chance, copies = generator(self.seed, self.draw), len(self.envs)
        now = [env.reset(episode_seed(TRAIN, self.seed, i, self.draw)) for i, env in enumerate(self.envs)]
        episodes: list[list[Step]] = [[] for _ in self.envs]
        running = list(range(copies))
        while running:
            seen = np.stack([now[i] for i in running])
            actions, going = self.act(torch.from_numpy(seen), chance).numpy(), []
            for i, observation, action in zip(running, seen, actions, strict=True):
                now[i], reward, terminated, truncated = self.envs[i].step(action)
                truncated = truncated and not terminated
                episodes[i].append(Step(observation, action, np.float32(reward), now[i], terminated, truncated))
                if not (terminated or truncated):
                    going.append(i)
            self.steps += len(running)
            running = going
        self.lengths += map(len, episodes)
        self.finished += [(self.steps, float(sum(step.reward for step in steps))) for steps in episodes]
        batch = dict(self.look_back(lay_out(episodes)))
        batch["draw"], batch["played"] = torch.full((copies,), self.draw), torch.full((copies,), self.steps)
        batch["ids"] = torch.arange(copies)
        self.draw += 1
        return batch

    def state_dict(self) -> dict[str, Any]:
        return {
            "env": self.name,
            "copies": len(self.envs),
            "draw": self.draw,
            "steps": self.steps,
            "finished": np.asarray(self.finished, np.float64).reshape(-1, 2),
            "lengths": list(self.lengths),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        if (state["env"], state["copies"]) != (self.name, len(self.envs)):
            raise Mistake(
                f"the checkpoint was trained in {state['copies']} x {state['env']}, not {len(self.envs)} x {self.name}"
                "; resume with the same --data.env and --batch"
            )
        self.draw, self.steps = state["draw"], state["steps"]
        self.lengths = list(state["lengths"])
        self.finished = [(int(step), float(total)) for step, total in state["finished"]]


def lay_out(episodes: list[list[Step]]) -> dict[str, Tensor]:
    """Episodes side by side, zeros after their end, and `real`."""
    longest, found = max(map(len, episodes)), {}
    for name in Step._fields:
        columns = [np.stack([getattr(step, name) for step in steps]) for steps in episodes]
        whole = np.zeros((len(episodes), longest, *columns[0].shape[1:]), columns[0].dtype)
        for row, column in zip(whole, columns, strict=True):
            row[: len(column)] = column
        found[name] = torch.from_numpy(whole)
    lengths = torch.tensor([len(steps) for steps in episodes])
    return {**found, "real": torch.arange(longest) < lengths[:, None]}
