"""What the machine is good at: device, threads, compilation and memory, chosen for the run and recorded."""

from __future__ import annotations

import ctypes
import os
import platform
import sys
from pathlib import Path
from typing import Any

import torch
from torch import nn

from descend.contracts import Batch
from descend.engine.loop import Loop

SMALL_WORK = 3e7  # parameters x examples in a step below which a second thread costs more than it brings


def find_device() -> torch.device:
    """The accelerator if there is one, else the CPU."""
    return (
        torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0))) if torch.cuda.is_available() else torch.device("cpu")
    )


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
    return batch if where.type == "cpu" else {name: x.to(where, non_blocking=True) for name, x in batch.items()}


def describe_environment() -> dict[str, Any]:
    """What a reader of a figure needs to know about where it came from."""
    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "platform": platform.platform(),
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu",
    }


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()
