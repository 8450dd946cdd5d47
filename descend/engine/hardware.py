"""What the machine is good at: device, threads, compilation and memory, chosen for the run and recorded."""

from __future__ import annotations

import ctypes
import os
import platform
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from descend.contracts import Batch
from descend.engine.loop import Loop
from descend.errors import Mistake

SMALL_WORK = 3e7  # parameters x examples in a step below which a second thread costs more than it brings


def find_device(wanted: str = "auto") -> torch.device:
    """The device that --device names; auto: CUDA where there is one, else Apple's MPS, else the CPU.

    MPS computes in one process: under torchrun auto leaves it aside.
    """
    several = int(os.environ.get("WORLD_SIZE", 1)) > 1
    there = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available() and not several, "cpu": True}
    best = next(name for name, found in there.items() if found)
    chosen = best if wanted == "auto" else wanted
    if not there[chosen]:
        reason = "torchrun's processes cannot share it" if chosen == "mps" and several else "torch finds none here"
        raise Mistake(f"--device {chosen}: {reason}; give --device {best}, or leave the flag out")
    return torch.device(chosen, int(os.environ.get("LOCAL_RANK", 0))) if chosen == "cuda" else torch.device(chosen)


def name_device(where: torch.device) -> str:
    """What a reader of a figure knows it by."""
    return torch.cuda.get_device_name(where) if where.type == "cuda" else where.type


@contextmanager
def tell_unsupported() -> Iterator[None]:
    """Inside, what Apple's MPS cannot do (float64, some operations) is told in one line, with the way on."""
    try:
        yield
    except (TypeError, RuntimeError) as error:  # NotImplementedError is a RuntimeError
        if "MPS" not in str(error):
            raise
        said = str(error).strip().split("\n")[0].split(". ")[0]
        raise Mistake(f"--device mps cannot run this: {said}; give --device cpu") from None


def widen(x: Tensor) -> Tensor:
    """In float64, which MPS has not: there on the CPU."""
    return (x.cpu() if x.device.type == "mps" else x).double()


def choose_threads(wanted: int, model: nn.Module, units: int) -> int:
    """As many threads as wanted; 0 chooses: one for small work, where handing it out costs more than doing it, else a
    share of the cores among processes. OMP_NUM_THREADS limits the choice (torchrun sets it too, so not under that)."""
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    if wanted:
        return min(wanted, cores)
    if sum(p.numel() for p in model.parameters()) * units < SMALL_WORK:
        return 1
    if processes := os.environ.get("LOCAL_WORLD_SIZE"):
        return max(1, cores // int(processes))
    limit = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0]
    return min(cores, int(limit)) if limit.isdecimal() and int(limit) else cores


@contextmanager
def one_thread() -> Iterator[None]:
    """Inside, torch computes with one thread: how sums round depends on their number."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def should_compile(loop: Loop, where: torch.device) -> bool:
    """Whether to run torch.compile. On CPUs it gains a few percent and costs half a minute: only when asked."""
    return loop.compile == "on" or (loop.compile == "auto" and where.type == "cuda")


def keep_memory() -> None:
    """Ask glibc to keep freed memory: activations of the same sizes come back every step, and pages asked anew from the
    system cost a fault and a clearing each."""
    if sys.platform == "linux" and platform.libc_ver()[0] == "glibc":
        libc = ctypes.CDLL(None)
        trim, top_pad, mmap = -1, -2, -3  # M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_THRESHOLD of malloc.h
        for option, size in ((mmap, 32 * 2**20), (trim, 2**31 - 1), (top_pad, 64 * 2**20)):
            libc.mallopt(option, size)


def move_batch(batch: Batch, where: torch.device) -> Batch:
    """The batch on the device; itself when it is there already."""
    ahead = where.type == "cuda"  # MPS may compute before a copy that it does not wait for has arrived
    return batch if where.type == "cpu" else {name: x.to(where, non_blocking=ahead) for name, x in batch.items()}


def describe_environment(where: torch.device | None = None) -> dict[str, Any]:
    """What a reader of a figure needs to know about where it came from."""
    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "platform": platform.platform(),
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "device": name_device(where or find_device()),
    }


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()
