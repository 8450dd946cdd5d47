"""Small environments whose every step is known, registered with gymnasium for the tests."""

from __future__ import annotations

import itertools
from typing import Any

import gymnasium
import numpy as np

LIMIT = 5  # steps of Counter before the time limit


class Counter(gymnasium.Env):
    """Observation: (episode's random mark, step). Reward: the step. Action 1 terminates, action 0 counts on."""

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (2,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        self.mark, self.count = self.np_random.random(), 0
        return self._look(), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict]:
        self.count += 1
        return self._look(), float(self.count), action == 1, False, {}

    def _look(self) -> np.ndarray:
        return np.array([self.mark, self.count], np.float32)


class Moody(Counter):
    """Not a function of seed and actions: its mark comes from a count of all episodes ever."""

    episodes = itertools.count()

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        self.mark = float(next(self.episodes))
        return self._look(), {}


def absent() -> gymnasium.Env:
    raise gymnasium.error.DependencyNotInstalled("pip install absent")


gymnasium.register("Absent-v0", absent)
gymnasium.register("Counter-v0", Counter, max_episode_steps=LIMIT)
gymnasium.register("Moody-v0", Moody, max_episode_steps=LIMIT)
