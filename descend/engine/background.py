"""Saving does not stop training: the state is copied at its step, and a thread writes the copy.

One write at a time: the next save waits for it, and so does the end of a run. What goes wrong in the thread is raised
there. The memory of a copy is kept for the next one, which is then five times faster. Where it would be more than a
share of what is free, or there is no telling, saving is synchronous.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

SHARE = 0.25  # of the available memory, for the copy
MEMINFO = Path("/proc/meminfo")
LIMITS = Path("/sys/fs/cgroup")  # what a container may use
Place: TypeAlias = tuple[object, ...]


class Writer:
    """A thread that writes one thing at a time, and the memory for what it writes."""

    def __init__(self) -> None:
        self.copies: dict[Place, Tensor] = {}
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None

    def start(self, write: Callable[[], object]) -> None:
        """Begin to write, once what was begun before is done."""
        self.wait()
        self._thread = threading.Thread(target=self._run, args=(write,), name="checkpoint")
        self._thread.start()

    def wait(self) -> None:
        """Until nothing is being written; an error of the thread is raised here, once."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        error, self._error = self._error, None
        if error is not None:
            raise error

    def _run(self, write: Callable[[], object]) -> None:
        try:
            write()
        except BaseException as error:  # raised by `wait`, in the thread that asked for the write
            self._error = error


def copy_state(
    state: Any, weights: dict[str, Tensor], copies: dict[Place, Tensor]
) -> tuple[Any, dict[str, Tensor]] | None:
    """The state and the published weights with copies of their tensors; None where memory is short.

    `copies` are those of the time before: they are written over, and replaced by those of this time. Weights that are
    tensors of the state share its copies. Others were made for publishing (averages), or never change.
    """
    live: dict[Place, Tensor] = {}
    _collect(state, live)
    kept = {place: copies[place] for place in live if place in copies}
    copies.clear()
    held = sum(x.nbytes for x in kept.values())
    if sum(x.nbytes for x in live.values()) > SHARE * (available_memory() + held):
        return None
    copies |= {place: kept[place] if place in kept else torch.empty_like(x, device="cpu") for place, x in live.items()}
    with torch.no_grad():
        torch._foreach_copy_(list(copies.values()), list(live.values()))
    return _replace(state, copies), {name: copies.get(_place(x), x) for name, x in weights.items()}


def _collect(value: Any, live: dict[Place, Tensor]) -> None:
    if isinstance(value, Tensor):
        live.setdefault(_place(value), value.detach())
    elif isinstance(value, dict | list | tuple):
        for item in value.values() if isinstance(value, dict) else value:
            _collect(item, live)


def _replace(value: Any, known: dict[Place, Tensor]) -> Any:
    if isinstance(value, Tensor):
        return known[_place(value)]
    if isinstance(value, np.ndarray):
        return value.copy()
    if isinstance(value, dict):
        return {key: _replace(item, known) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_replace(item, known) for item in value)
    return value


def _place(x: Tensor) -> Place:
    """What two names of the same numbers have in common."""
    return x.device, x.data_ptr(), x.dtype, tuple(x.shape), x.stride()


def available_memory() -> int:
    """Bytes that this process may still take without swapping; 0 where the system does not tell."""
    try:
        lines = dict(line.split(":", 1) for line in MEMINFO.read_text().splitlines())
        free = int(lines["MemAvailable"].split()[0]) * 1024
    except (OSError, ValueError, KeyError):
        return 0
    try:
        limit, used = (int((LIMITS / name).read_text()) for name in ("memory.max", "memory.current"))
    except (OSError, ValueError):  # no container, or one without a limit ("max")
        return free
    return max(0, min(free, limit - used))
