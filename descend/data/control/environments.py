"""Environments side by side: gymnasium's five-value step, and a state that brings an episode back to the bit.

    (s', r, terminated, truncated, info) = step(a)

Episode e of environment i is reset with a seed that is a function of (seed, i, e). A deterministic environment is then
a function of that seed and the actions since, so the state is just these; loading replays them in a fresh environment.
It works for any deterministic gymnasium environment, and nothing of its inside has to be opened. Whether it is
deterministic is checked: the replay must end in the observation and the return that were saved.

The transition into a terminal or cut-off state carries the real last observation as `next`; the reset comes after it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import isfinite
from typing import Any, NamedTuple

import gymnasium
import numpy as np
import torch
from torch import Tensor

from descend.data.control.spaces import Spaces as Spaces
from descend.data.control.spaces import check_spaces, describe_spaces, make_reader, make_writer
from descend.errors import Mistake, nearest

TRAIN, VALID, TEST = 0, 1, 2  # first number of a seed's path: the three kinds of episodes never share a seed's origin
ENDLESS = 20_000  # steps after which an episode without a time limit counts as one that never ends

Rows = dict[str, np.ndarray]


def make_env(name: str, longest: int = 0, **how: Any) -> gymnasium.Env:
    """The environment of this name, if a policy here can see and act in it; `longest` is its time limit, 0 its own."""
    limit = {"max_episode_steps": longest} if longest else {}
    try:
        env = gymnasium.make(name, disable_env_checker=True, **limit, **how)
    except (gymnasium.error.Error, ImportError) as error:
        hint = "" if name in gymnasium.registry else nearest(name, gymnasium.registry)
        hint = hint or " " + " ".join(str(error).split())
        raise Mistake(f"--data.env {name}: gymnasium cannot make it.{hint}") from None
    check_spaces(env, name)
    return env


def spaces_of(name: str) -> Spaces:
    """The spaces of the environment of this name."""
    return describe_spaces(make_env(name))


def episode_seed(*path: int) -> int:
    """A seed from a path of numbers; other paths give unrelated seeds."""
    return int(np.random.SeedSequence(path).generate_state(1)[0])


class World:
    """One environment, with vectors for what is seen and done. What is no number and what never ends is refused."""

    def __init__(self, name: str, longest: int = 0, **how: Any):
        self.name, self.env = name, make_env(name, longest, **how)
        self.read, self.write = make_reader(self.env.observation_space), make_writer(self.env.action_space)
        limited = self.env.spec is not None and self.env.spec.max_episode_steps
        self.most = float("inf") if limited else ENDLESS
        self.age = 0  # steps of this episode

    def reset(self, seed: int) -> np.ndarray:
        """The first observation of the episode of this seed."""
        self.age = 0
        seen = self.read(self.env.reset(seed=seed)[0])
        if not isfinite(seen.sum()):
            self.refuse_numbers(seen, 0.0)
        return seen

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool]:
        """What follows an action: observation, reward, terminated, truncated."""
        shown, gained, terminated, truncated, _ = self.env.step(self.write(action))
        self.age += 1
        seen, reward = self.read(shown), float(gained)
        if not isfinite(seen.sum() + reward):
            self.refuse_numbers(seen, reward)
        if self.age >= self.most and not (terminated or truncated):
            raise Mistake(
                f"{self.name}: an episode has not ended after {self.age:,} steps, and the environment has no time"
                " limit; give it one: --data.longest 500"
            )
        return seen, reward, bool(terminated), bool(truncated)

    def refuse_numbers(self, seen: np.ndarray, reward: float) -> None:
        """Name what is NaN or infinite; a sum may overflow though its parts do not."""
        wrong = np.flatnonzero(~np.isfinite(seen))
        if len(wrong):
            what = f"number {wrong[0]} of the observation is {seen[wrong[0]]}"
        elif not isfinite(reward):
            what = f"the reward is {reward}"
        else:
            return
        raise Mistake(f"{self.name}: {what} after step {self.age} of an episode; mend the environment")


class Environments:
    """Copies of one environment, stepped together; a finished episode starts again at once."""

    def __init__(self, name: str, copies: int, seed: int, longest: int = 0):
        self.name, self.seed, self.longest = name, seed, longest
        self.envs = [World(name, longest) for _ in range(copies)]
        self.steps = 0  # environment steps so far, over all copies
        self.finished: list[tuple[int, float]] = []  # (environment steps so far, return) of each finished episode
        self.lengths: list[int] = []  # steps of each finished episode; runs of the last release know the later ones
        self.episode = [0] * copies
        self.actions: list[list[np.ndarray]] = [[] for _ in self.envs]
        self.total = [0.0] * copies
        self.observation = np.stack([self._reset(i) for i in range(copies)])

    def _reset(self, i: int) -> np.ndarray:
        self.actions[i], self.total[i] = [], 0.0
        return self.envs[i].reset(episode_seed(TRAIN, self.seed, i, self.episode[i]))

    def step(self, actions: np.ndarray) -> Rows:
        """One step of every copy, as rows: observation, action, reward, next, terminated, truncated."""
        before, copies = self.observation, len(self.envs)
        following, reward = np.empty_like(before), np.empty(copies, np.float32)
        terminated, truncated, over = np.empty(copies, bool), np.empty(copies, bool), []
        for i, env in enumerate(self.envs):
            action = actions[i]
            following[i], gained, end, cut = env.step(action)
            reward[i], terminated[i], truncated[i] = gained, end, cut
            self.actions[i].append(action)
            self.total[i] += gained
            if end or cut:
                over.append(i)
        self.observation = following.copy()
        self.steps += copies
        for i in over:
            self.finished.append((self.steps, self.total[i]))
            self.lengths.append(len(self.actions[i]))
            self.episode[i] += 1
            self.observation[i] = self._reset(i)
        return {
            "observation": before,
            "action": actions,
            "reward": reward,
            "next": following,
            "terminated": terminated,
            "truncated": truncated,
        }

    def state_dict(self) -> dict[str, Any]:
        return {
            "env": self.name,
            "steps": self.steps,
            "finished": np.asarray(self.finished, np.float64).reshape(-1, 2),
            "lengths": list(self.lengths),
            "episode": list(self.episode),
            "actions": [np.asarray(actions) for actions in self.actions],
            "observation": self.observation.copy(),
            "total": list(self.total),
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
        self.lengths = list(state.get("lengths", []))
        self.envs = [World(self.name, self.longest) for _ in self.envs]
        for i, actions in enumerate(state["actions"]):
            self.observation[i] = self._reset(i)
            for action in actions:
                self.observation[i], gained, _, _ = self.envs[i].step(action)
                self.actions[i].append(action)
                self.total[i] += gained
        seen = np.array_equal(self.observation, state["observation"], equal_nan=True)
        if not seen or self.total != list(state.get("total", self.total)):
            raise Mistake(
                f"{self.name} cannot be resumed exactly: the same seed and actions led to a different "
                f"{'return' if seen else 'observation'}"
            )


class Outcome(NamedTuple):
    """How episodes went."""

    returns: Tensor
    """The sum of rewards of each (b)."""
    lengths: Tensor
    """The steps of each (b)."""


class Arena:
    """Whole episodes from given seeds, all at once: `arena(act, seeds)` is the return of each."""

    def __init__(self, name: str, longest: int = 0):
        self.name, self.longest = name, longest
        self.envs: list[World] = []  # made when first needed, then kept

    def __call__(self, act: Callable[[Tensor], Tensor], seeds: Sequence[int]) -> Tensor:
        """`act` maps the observations of the episodes that still run (b, o) to their actions (b)."""
        return self.play(act, seeds).returns

    def play(self, act: Callable[[Tensor], Tensor], seeds: Sequence[int]) -> Outcome:
        """Returns and lengths."""
        self.envs += [World(self.name, self.longest) for _ in range(len(seeds) - len(self.envs))]
        observation = [env.reset(int(seed)) for env, seed in zip(self.envs, seeds, strict=False)]
        returns, running = [0.0] * len(seeds), list(range(len(seeds)))
        while running:
            actions = act(torch.from_numpy(np.stack([observation[i] for i in running]))).numpy()
            going = []
            for i, action in zip(running, actions, strict=True):
                observation[i], reward, terminated, truncated = self.envs[i].step(action)
                returns[i] += reward
                if not (terminated or truncated):
                    going.append(i)
            running = going
        lengths = [env.age for env in self.envs[: len(seeds)]]
        return Outcome(torch.tensor(returns, dtype=torch.float32), torch.tensor(lengths, dtype=torch.float32))

    def scores(self, act: Callable[[Tensor], Tensor], seeds: Sequence[int]) -> dict[str, Tensor]:
        """The same by name, as a task tells them."""
        return {"return": (found := self.play(act, seeds)).returns, "length": found.lengths}


class Episodes:
    """The episodes to evaluate on, by their seeds: the same ones at every walk, whatever the run's own seed."""

    def __init__(self, kind: int, count: int):
        self.seeds = torch.tensor([episode_seed(kind, i) for i in range(count)])

    def __iter__(self) -> Iterator[dict[str, Tensor]]:
        yield {"seed": self.seeds, "ids": torch.arange(len(self.seeds))}

    def __len__(self) -> int:
        return 1


def repeats_itself(name: str, longest: int = 0, steps: int = 20) -> bool:
    """Whether the same seed and actions lead to the same episode, tried on a few random steps of two episodes."""
    rng, first, second = np.random.default_rng(0), World(name, longest), World(name, longest)
    found = describe_spaces(first.env)
    for seed in (1, 2):
        if not np.array_equal(first.reset(seed), second.reset(seed)):
            return False
        for _ in range(steps):
            action = rng.integers(found.actions) if found.finite else rng.standard_normal(found.actions, np.float32)
            (a, *rest), (b, *others) = first.step(np.asarray(action)), second.step(np.asarray(action))
            if not np.array_equal(a, b) or rest != others:
                return False
            if rest[1] or rest[2]:
                break
    return True
