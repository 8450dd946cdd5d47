"""Which process this is among those that torchrun started: read from its environment, without a process group."""

from __future__ import annotations

import os

from descend.errors import Mistake


def process() -> tuple[int, int]:
    """(rank, world): this process and how many there are; (0, 1) when torchrun did not start us."""
    rank, world = _number("RANK", 0), _number("WORLD_SIZE", 1)
    if not 0 <= rank < world:
        raise Mistake(f"RANK={rank} does not fit WORLD_SIZE={world}; start the processes with torchrun, or unset both")
    return rank, world


def _number(name: str, default: int) -> int:
    text = os.environ.get(name, str(default))
    try:
        return int(text)
    except ValueError:
        raise Mistake(f"{name}={text!r} in the environment is not a number; torchrun sets it, or unset it") from None
