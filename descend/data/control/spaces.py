"""What is seen and what can be done, as vectors: gymnasium's spaces, and the vectors that networks read and write.

    Box            its numbers in one row, whatever its shape
    Discrete(n)    one-hot: a vector of n with a single 1
    MultiDiscrete, MultiBinary, Tuple, Dict       their parts end to end, a Dict in the order of its keys

That is `gymnasium.spaces.flatten`, in float32. Images are refused: a multilayer perceptron sees no picture in them.
Actions are one of n, counted from 0 wherever the space begins, or a vector that is brought into a bounded Box.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from descend.errors import Mistake

PARTS = (spaces.Box, spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary)


@dataclass(frozen=True)
class Spaces:
    """What is seen and what can be done."""

    observations: int
    """Numbers in an observation."""
    actions: int
    """Actions to choose from, or numbers in an action."""
    finite: bool
    """Whether the actions are a finite set."""
    states: int = 0
    """How many states there are, where an observation is the number of one."""


def describe_spaces(env: gymnasium.Env) -> Spaces:
    """The sizes of what an environment's policy reads and writes."""
    seen, taken = env.observation_space, env.action_space
    finite = isinstance(taken, spaces.Discrete)
    count = int(taken.n) if isinstance(taken, spaces.Discrete) else spaces.flatdim(taken)
    states = int(seen.n) if isinstance(seen, spaces.Discrete) else 0
    return Spaces(spaces.flatdim(seen), count, finite, states)


def check_spaces(env: gymnasium.Env, name: str) -> None:
    """Refuse an environment that no policy here could see or act in."""
    seen, taken = env.observation_space, env.action_space
    for part in list_parts(seen):
        if not isinstance(part, PARTS):
            kinds = ", ".join(kind.__name__ for kind in PARTS)
            raise Mistake(
                f"--data.env {name}: observations are {one_line(seen)}, with a {type(part).__name__} that has no fixed"
                f" number of numbers; choose one of {kinds}, or a Dict or Tuple of them"
            )
        if isinstance(part, spaces.Box) and part.dtype == np.uint8 and len(part.shape) >= 2:
            size = "×".join(map(str, part.shape))
            raise Mistake(
                f"--data.env {name}: observations are {type(seen).__name__} with images of {size}, and the policies"
                " here read vectors; choose a variant that tells its state in numbers"
            )
    if isinstance(taken, spaces.Discrete):
        return
    if not isinstance(taken, spaces.Box):
        raise Mistake(f"--data.env {name}: actions are {one_line(taken)}; choose one with Discrete(n) or a Box")
    if not (np.isfinite(taken.low).all() and np.isfinite(taken.high).all()):
        raise Mistake(
            f"--data.env {name}: actions are an unbounded {one_line(taken)}; give its numbers a least and a most value"
        )


def list_parts(space: gymnasium.Space) -> Iterator[gymnasium.Space]:
    """The spaces that a Dict or Tuple is made of, through every level."""
    if isinstance(space, spaces.Dict | spaces.Tuple):
        for part in space.spaces.values() if isinstance(space, spaces.Dict) else space.spaces:
            yield from list_parts(part)
    else:
        yield space


def one_line(space: gymnasium.Space) -> str:
    """A space as it is told."""
    text = " ".join(str(space).split())
    return text if len(text) <= 80 else f"{text[:77]}..."


def make_reader(space: gymnasium.Space) -> Callable[[Any], np.ndarray]:
    """A function from what the environment shows to a vector."""
    if isinstance(space, spaces.Box):
        return (
            (lambda seen: np.array(seen, np.float32))
            if len(space.shape) == 1
            else (lambda seen: np.array(seen, np.float32).reshape(-1))
        )
    if isinstance(space, spaces.Discrete):
        start, rows = int(space.start), np.eye(int(space.n), dtype=np.float32)
        return lambda seen: rows[int(seen) - start]
    return lambda seen: np.asarray(spaces.flatten(space, seen), np.float32)


def make_writer(space: gymnasium.Space) -> Callable[[np.ndarray], Any]:
    """A function from a policy's action to the environment's; a vector is brought into the box, as a motor does with a
    command beyond its strength."""
    if isinstance(space, spaces.Discrete):
        start = int(space.start)
        return (lambda action: int(action) + start) if start else int
    low, high, shape = space.low, space.high, space.shape  # type: ignore[attr-defined]
    return lambda action: np.minimum(np.maximum(action.reshape(shape), low), high)
