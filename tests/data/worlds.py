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


class Failing(Counter):
    """Works for a while, over all of its copies."""

    taken = itertools.count()

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict]:
        seen, _, *rest = super().step(action)
        return seen, np.inf if next(self.taken) > 250 else 1.0, *rest


def absent() -> gymnasium.Env:
    raise gymnasium.error.DependencyNotInstalled("pip install absent")


class Sick(Counter):
    """What it shows or pays is no number from the third step on."""

    def __init__(self, reward: float = 1.0, seen: float = 0.0):
        self.reward, self.seen = reward, seen

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict]:
        seen, *_ = super().step(action)
        late = self.count >= 3
        return seen + (self.seen if late else 0), self.reward if late else 1.0, False, False, {}


class Shaped(Counter):
    """Shows and takes whatever the spaces say; the reward is the action that arrived, one number of it."""

    def __init__(self, seen: gymnasium.Space | None = None, taken: gymnasium.Space | None = None):
        self.observation_space = seen or Counter.observation_space
        self.action_space = taken or Counter.action_space

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict]:
        super().reset(seed=seed)
        self.observation_space.seed(int(self.np_random.integers(2**31)))
        return self.observation_space.sample(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict]:
        assert self.action_space.contains(action)
        self.count += 1
        return self.observation_space.sample(), float(np.asarray(action).sum()), self.count == LIMIT, False, {}


gymnasium.register("Absent-v0", absent)
gymnasium.register("Absent-module-v0", "nothing_here:Env")
gymnasium.register("Sick-v0", Sick, kwargs={"reward": np.nan})
gymnasium.register("Blind-v0", Sick, kwargs={"seen": np.nan})
gymnasium.register("Endless-v0", Sick)
gymnasium.register("Failing-v0", Failing, max_episode_steps=LIMIT)
gymnasium.register("Shaped-v0", Shaped)
PARTS = {
    "where": gymnasium.spaces.Box(-1, 1, (2, 2), np.float32),
    "card": gymnasium.spaces.Discrete(3, start=5),
    "switches": gymnasium.spaces.MultiBinary(2),
}
"""An observation of 9 numbers; gymnasium keeps the keys of a Dict in alphabetical order."""
gymnasium.register("Mixed-v0", Shaped, kwargs={"seen": gymnasium.spaces.Dict(PARTS)})
gymnasium.register("Counter-v0", Counter, max_episode_steps=LIMIT)
gymnasium.register("Moody-v0", Moody, max_episode_steps=LIMIT)
