"""Environments side by side: gymnasium's five-value step, and a state that brings an episode back to the bit.

    (s', r, terminated, truncated, info) = step(a)

Episode e of environment i is reset with a seed that is a function of (seed, i, e). A deterministic environment is then
a function of that seed and the actions since, so the state is just these; loading replays them in a fresh environment.
It works for any deterministic gymnasium environment, and nothing of its inside has to be opened. Whether it is
deterministic is checked: the replay must end in the observation that was saved.

The transition into a terminal or cut-off state carries the real last observation as `next`; the reset comes after it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
import torch
from torch import Tensor

from descend.errors import Mistake, nearest

TRAIN, VALID, TEST = 0, 1, 2  # first number of a seed's path: the three kinds of episodes never share a seed's origin

Rows = dict[str, np.ndarray]


def make_env(name: str) -> gymnasium.Env:
    """The environment of this name, if its observations are vectors and its actions a finite set or a box."""
    try:
        env = gymnasium.make(name, disable_env_checker=True)
    except gymnasium.error.Error as error:
        hint = "" if name in gymnasium.registry else nearest(name, gymnasium.registry)
        hint = hint or " " + " ".join(str(error).split())
        raise Mistake(f"--data.env {name}: gymnasium cannot make it.{hint}") from None
    seen, taken = env.observation_space, env.action_space
    if not isinstance(seen, gymnasium.spaces.Box) or len(seen.shape) != 1:
        raise Mistake(f"--data.env {name}: observations are {seen}; choose one whose observations are vectors (Box)")
    if isinstance(taken, gymnasium.spaces.Box) and len(taken.shape) == 1:
        return env
    if isinstance(taken, gymnasium.spaces.Discrete) and taken.start == 0:
        return env
    raise Mistake(f"--data.env {name}: actions are {taken}; choose one with Discrete(n) or a vector Box of actions")


@dataclass(frozen=True)
class Spaces:
    """What is seen and what can be done."""

    observations: int
    """Numbers in an observation."""
    actions: int
    """Actions to choose from, or numbers in an action."""
    finite: bool
    """Whether the actions are a finite set."""


def spaces_of(name: str) -> Spaces:
    """The spaces of the environment of this name."""
    env = make_env(name)
    taken = env.action_space
    finite = isinstance(taken, gymnasium.spaces.Discrete)
    count = taken.n if isinstance(taken, gymnasium.spaces.Discrete) else gymnasium.spaces.flatdim(taken)
    return Spaces(gymnasium.spaces.flatdim(env.observation_space), int(count), finite)


def episode_seed(*path: int) -> int:
    """A seed from a path of numbers; other paths give unrelated seeds."""
    return int(np.random.SeedSequence(path).generate_state(1)[0])


def apply(env: gymnasium.Env, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool]:
    """One step; a vector action is brought into the box, as a motor does with a command beyond its strength."""
    space = env.action_space
    if isinstance(space, gymnasium.spaces.Box):
        observation, reward, terminated, truncated, _ = env.step(np.clip(action, space.low, space.high))
    else:
        observation, reward, terminated, truncated, _ = env.step(int(action))
    return np.asarray(observation, np.float32), float(reward), bool(terminated), bool(truncated)


class Environments:
    """Copies of one environment, stepped together; a finished episode starts again at once."""

    def __init__(self, name: str, copies: int, seed: int):
        self.name, self.seed = name, seed
        self.envs = [make_env(name) for _ in range(copies)]
        self.steps = 0  # environment steps so far, over all copies
        self.finished: list[tuple[int, float]] = []  # (environment steps so far, return) of each finished episode
        self.episode = [0] * copies
        self.actions: list[list[np.ndarray]] = [[] for _ in self.envs]
        self.total = [0.0] * copies
        self.observation = np.stack([self._reset(i) for i in range(copies)])

    def _reset(self, i: int) -> np.ndarray:
        self.actions[i], self.total[i] = [], 0.0
        seed = episode_seed(TRAIN, self.seed, i, self.episode[i])
        return np.asarray(self.envs[i].reset(seed=seed)[0], np.float32)

    def _step(self, i: int, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool]:
        after = apply(self.envs[i], action)
        self.actions[i].append(action)
        self.total[i] += after[1]
        return after

    def step(self, actions: np.ndarray) -> Rows:
        """One step of every copy, as rows: observation, action, reward, next, terminated, truncated."""
        before = self.observation
        steps = [self._step(i, action) for i, action in enumerate(actions)]
        following, reward, terminated, truncated = (np.asarray(column) for column in zip(*steps, strict=True))
        self.observation = following.copy()
        self.steps += len(self.envs)
        for i in np.flatnonzero(terminated | truncated).tolist():
            self.finished.append((self.steps, self.total[i]))
            self.episode[i] += 1
            self.observation[i] = self._reset(i)
        return {
            "observation": before,
            "action": actions,
            "reward": reward.astype(np.float32),
            "next": following,
            "terminated": terminated,
            "truncated": truncated,
        }

    def state_dict(self) -> dict[str, Any]:
        return {
            "env": self.name,
            "steps": self.steps,
            "finished": np.asarray(self.finished, np.float64).reshape(-1, 2),
            "episode": list(self.episode),
            "actions": [np.asarray(actions) for actions in self.actions],
            "observation": self.observation.copy(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Play the open episodes again, up to where they stood."""
        if (state["env"], len(state["episode"])) != (self.name, len(self.envs)):
            raise Mistake(
                f"the checkpoint was trained in {len(state['episode'])} x {state['env']}, not "
                f"{len(self.envs)} x {self.name}; resume with the same --data.env and number of copies"
            )
        self.steps, self.episode = state["steps"], list(state["episode"])
        self.finished = [(int(step), float(total)) for step, total in state["finished"]]
        self.envs = [make_env(self.name) for _ in self.envs]
        for i, actions in enumerate(state["actions"]):
            self.observation[i] = self._reset(i)
            for action in actions:
                self.observation[i] = self._step(i, action)[0]
        if not np.array_equal(self.observation, state["observation"], equal_nan=True):
            raise Mistake(
                f"{self.name} cannot be resumed exactly: the same seed and actions led to a different observation"
            )


class Arena:
    """Whole episodes from given seeds, all at once: `arena(act, seeds)` is the return of each."""

    def __init__(self, name: str):
        self.name = name
        self.envs: list[gymnasium.Env] = []  # made when first needed, then kept

    def __call__(self, act: Callable[[Tensor], Tensor], seeds: Sequence[int]) -> Tensor:
        """`act` maps the observations of the episodes that still run (b, o) to their actions (b)."""
        self.envs += [make_env(self.name) for _ in range(len(seeds) - len(self.envs))]
        observation = [self.envs[i].reset(seed=int(seed))[0] for i, seed in enumerate(seeds)]
        returns, running = [0.0] * len(seeds), list(range(len(seeds)))
        while running:
            actions = act(torch.from_numpy(np.stack([observation[i] for i in running]).astype(np.float32))).numpy()
            going = []
            for i, action in zip(running, actions, strict=True):
                observation[i], reward, terminated, truncated = apply(self.envs[i], action)
                returns[i] += reward
                if not (terminated or truncated):
                    going.append(i)
            running = going
        return torch.tensor(returns, dtype=torch.float32)


class Episodes:
    """The episodes to evaluate on, by their seeds: the same ones at every walk, whatever the run's own seed."""

    def __init__(self, kind: int, count: int):
        self.seeds = torch.tensor([episode_seed(kind, i) for i in range(count)])

    def __iter__(self) -> Iterator[dict[str, Tensor]]:
        yield {"seed": self.seeds, "ids": torch.arange(len(self.seeds))}

    def __len__(self) -> int:
        return 1
