"""The two limits of this machine that the other benchmarks are measured against, with the threads that torch has."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch


def best_seconds(call: Callable[[], object], repeats: int) -> float:
    """The shortest of so many calls, after one to warm up."""
    call()
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return min(times)


def sgemm_peak(n: int = 2048, repeats: int = 12) -> float:
    """Floating-point operations a second of a float32 product of n x n matrices."""
    a, b = torch.randn(n, n), torch.randn(n, n)
    return 2 * n**3 / best_seconds(lambda: a @ b, repeats)


def memory_bandwidth(mib: int = 256, repeats: int = 12) -> float:
    """Bytes a second of reading so much memory (a sum; it is larger than the caches)."""
    x = torch.ones(mib * 2**20 // 4)
    return 4 * x.numel() / best_seconds(x.sum, repeats)


def measure() -> list[dict[str, object]]:
    """Both, for the eye; they have no peer."""
    peak, read = sgemm_peak() / 1e9, memory_bandwidth() / 1e9
    return [
        {"name": "sgemm, 2048 cubed", "ours": peak, "unit": "GFLOP/s"},
        {"name": "memory read, 256 MiB", "ours": read, "unit": "GB/s"},
    ]


if __name__ == "__main__":
    for row in measure():
        print(row)
