"""Efficient attention from 512 to 16,384 tokens: peak memory and time of forward and backward, one head of 64.

Every form runs in a process of its own, shortest text first, so that the process's peak after each length is that
length's. Memory is what a form adds to the process before its first call. The bar: at 16,384 tokens at most 1/8 of
full attention with its t × t matrix. Time is set against `attend`, full attention in compiled code that keeps no such
matrix.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

LENGTHS = (512, 1024, 2048, 4096, 8192, 16384)
SIZE, RADIUS, BLOCK, FEATURES, PROJECTED = 64, 256, 64, 256, 256
BAR = 8.0
Form = Callable[[Tensor, Tensor, Tensor], Tensor]


def full(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    from descend.ops.attention.dot_product import attention

    return attention(*(x.transpose(1, 2) for x in (q, k, v)))[0]


def fused(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    from descend.nn.attention.multi_head import attend

    return attend(q, k, v)


def window(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    from descend.nn.attention.sliding_window import window_attend

    return window_attend(q, k, v, RADIUS)


def dilated(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    from descend.nn.attention.sliding_window import dilated_attend

    return dilated_attend(q, k, v, RADIUS // 2, 2)


def longformer(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    from descend.nn.attention.multi_head import attend
    from descend.nn.attention.sliding_window import Everywhere, window_attend

    keep = torch.ones(1, q.shape[1], dtype=torch.bool)
    keep[:, :8] = False
    y = window_attend(q, k, v, RADIUS, keep, Everywhere(k[:, :8], v[:, :8], keep.new_ones(1, 8)))
    return torch.cat([attend(q[:, :8], k, v), y[:, 8:]], dim=1)


def big_bird(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    from descend.nn.attention.big_bird import big_bird_plan, block_attend

    return block_attend(q, k, v, big_bird_plan(q.shape[1] // BLOCK, 1, 1, 3, 1, 0), BLOCK)


def strided(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    from descend.nn.attention.strided import strided_attend

    return strided_attend(q, k, v, math.isqrt(q.shape[1]))


def linear(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    from descend.nn.attention.linear import causal_linear_attend
    from descend.ops.attention.linear import elu_plus_one

    return causal_linear_attend(elu_plus_one(q), elu_plus_one(k), v)


def performer(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    from descend.nn.attention.performer import performer_mix
    from descend.ops.attention.random_features import orthogonal_rows

    return performer_mix(q, k, v, orthogonal_rows(FEATURES, SIZE, torch.Generator().manual_seed(0)))


def linformer(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    from descend.nn.attention.linformer import linformer_attend

    e = torch.ones(PROJECTED, q.shape[1]) / q.shape[1]
    return linformer_attend(q, k, v, e, e)


FORMS: dict[str, Form] = {
    "full": full, "fused": fused, "window": window, "dilated": dilated, "longformer": longformer, "big_bird": big_bird,
    "strided": strided, "linear": linear, "performer": performer, "linformer": linformer,
}  # fmt: skip


def serve(name: str, lengths: list[int]) -> None:
    """The worker's side: peak bytes above the start and the best of two times, for each length."""
    import resource

    def peak() -> int:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

    def step(t: int) -> float:
        torch.manual_seed(0)
        q, k, v = (torch.randn(1, t, 1, SIZE, requires_grad=True) for _ in range(3))
        began = time.process_time()  # one thread, so whoever else is running does not count
        FORMS[name](q, k, v).sum().backward()
        return time.process_time() - began

    torch.set_num_threads(1)
    step(256)
    start = peak()
    found = []
    for t in lengths:
        seconds = min(step(t) for _ in range(2))
        found.append((t, peak() - start, seconds))
    print(json.dumps(found))


def worker(name: str, lengths: tuple[int, ...] = LENGTHS) -> list[tuple[int, int, float]]:
    """(length, bytes, seconds) of one form, measured in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.long_attention", name, *map(str, lengths)]
    out = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env={**os.environ}).stdout
    return [tuple(row) for row in json.loads(out.splitlines()[-1])]


def measure() -> list[dict[str, Any]]:
    from descend.theory.attention_cost import fit_exponent

    found = {name: worker(name) for name in FORMS}
    (longest, most, _), fastest = found["full"][-1], found["fused"][-1][2]
    rows = []
    for name, figures in found.items():
        if name == "full":
            continue
        lengths, memory, seconds = zip(*figures[-4:], strict=True)
        grows = f"memory ~ t^{fit_exponent(lengths, memory):.2f}, time ~ t^{fit_exponent(lengths, seconds):.2f}"
        note = f"{longest} tokens, forward and backward, one head of {SIZE}, a process each, CPU time; {grows}"
        rows.append(
            {"name": f"{name} attention, memory against full", "ours": memory[-1] / 2**20, "theirs": most / 2**20,
             "unit": "MiB", "ratio": most / memory[-1], "bar": BAR, "note": note}
        )  # fmt: skip
        if name != "fused":
            rows.append(
                {"name": f"{name} attention, time against fused full", "ours": seconds[-1], "theirs": fastest,
                 "unit": "s", "ratio": fastest / seconds[-1], "bar": 1.0, "note": note}
            )  # fmt: skip
    return rows


if __name__ == "__main__":
    serve(sys.argv[1], [int(t) for t in sys.argv[2:]])
