"""Attention in tiles beside attention with its n × n matrix: memory and time of both passes, on this machine.

    full     A = softmax(Q Kᵀ / √d) is made, and kept for the way back             `ops/attention/dot_product.py`
    tiled    tiles of 64 × 64; the scores are made again on the way back           `ops/attention/flash.py`
    fused    torch's scaled_dot_product_attention, the same idea in compiled code

Memory is what torch has allocated at most, beside queries, keys and values, from the profiler's record of every
allocation; time is the shortest of some calls. VOM names the method; S940 has the memory linear in n and the program 2
to 4 times as fast. That is of GPUs, whose fast memory holds a tile: here the readable form in tiles is measured, in a
language that pays for each of them, and for comparison the compiled one. Head size 64, one head, float32, one thread.

Systems: flash-attention
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.profiler import ProfilerActivity, profile

from descend.labs._evidence import AtLeast, AtMost, NeedsMore, Within
from descend.ops.attention.dot_product import attention
from descend.ops.attention.flash import flash_attention

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("S940-DLD.96", "VOM-B.8")
PRINTED = "Exact attention in tiles needs memory that is linear in the length, and is 2 to 4 times as fast."
CLAIM = "Attention in tiles needs memory that grows with the length, not with its square, at the same result."
PREDICTIONS = (
    Within(
        "growth of tiled memory", 0.9, 1.1, "the power of n with which its memory grows is 1; outside it is refuted"
    ),
    AtLeast("times less memory", 8.0, "at 2048 tokens the full form takes at least 8 times as much memory"),
    AtMost("largest difference", 1e-5, "values and gradients are those of the full form"),
)
PRINTED_PREDICTIONS = (
    AtLeast("times as fast", 2.0, "as printed: the readable tiles take at most half the time of the full form here"),
)
CONTROLS = (AtLeast("growth of full memory", 1.8, "the measure sees the n × n matrix: the full form's power is 2"),)
SCOPE = "one head of 64 numbers on a CPU; nothing is said of a GPU"
LENGTHS = (256, 512, 1024, 2048)
SIZE = 64
BUDGET = 20.0
LEAST = 6.0  # seconds that a call of all forms at all lengths takes, and its profile
Form = Callable[[Tensor, Tensor, Tensor], Tensor]
FORMS: dict[str, Form] = {
    "full": lambda q, k, v: attention(q, k, v)[0],
    "tiled": flash_attention,
    "fused": F.scaled_dot_product_attention,
}


def measure(seed: int, budget: float) -> dict[str, Any]:
    """Bytes and seconds of every form, over the length."""
    if budget < LEAST:
        raise NeedsMore(LEAST)
    random = torch.Generator().manual_seed(seed)
    columns: dict[str, Any] = {"length": list(LENGTHS)}
    columns |= {f"{name}, {what}": [] for name in FORMS for what in ("bytes", "seconds")}
    apart = 0.0
    for n in LENGTHS:
        inputs = [torch.randn(1, 1, n, SIZE, generator=random, requires_grad=True) for _ in range(3)]
        d_y = torch.randn(1, 1, n, SIZE, generator=random)
        found = {name: run(form, inputs, d_y) for name, form in FORMS.items()}
        pairs = zip(found["full"], found["tiled"], strict=True)
        apart = max([apart, *(float((a - b).abs().max()) for a, b in pairs)])
        for name, form in FORMS.items():
            columns[f"{name}, bytes"].append(measure_peak(lambda form=form: run(form, inputs, d_y)))  # type: ignore[misc]
            columns[f"{name}, seconds"].append(measure_time(lambda form=form: run(form, inputs, d_y)))  # type: ignore[misc]
    return {**columns, "apart": apart}


def run(form: Form, inputs: list[Tensor], d_y: Tensor) -> list[Tensor]:
    """The value and the gradients of queries, keys and values."""
    y = form(*inputs)
    return [y.detach(), *torch.autograd.grad(y, inputs, d_y)]


def measure_peak(call: Callable[[], object]) -> int:
    """The most bytes that were allocated at a time since the call began."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as record:
        call()
    assert record.profiler is not None
    events = [event for event in record.profiler.kineto_results.events() if event.name() == "[memory]"]
    now = most = 0
    for event in sorted(events, key=lambda event: event.start_ns()):
        now += event.nbytes()
        most = max(most, now)
    return most


def measure_time(call: Callable[[], object], calls: int = 3) -> float:
    """Seconds of the processor, of the shortest call."""
    best = math.inf
    for _ in range(calls):
        began = time.process_time()
        call()
        best = min(best, time.process_time() - began)
    return best


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    times = math.log2(numbers["length"][-1] / numbers["length"][-2])

    def growth(name: str) -> float:
        return math.log2(numbers[f"{name}, bytes"][-1] / numbers[f"{name}, bytes"][-2]) / times

    return {
        "growth of tiled memory": growth("tiled"),
        "growth of full memory": growth("full"),
        "times less memory": numbers["full, bytes"][-1] / numbers["tiled, bytes"][-1],
        "times as fast": numbers["full, seconds"][-1] / numbers["tiled, seconds"][-1],
        "largest difference": numbers["apart"],
    }


def figure(numbers: dict[str, Any]) -> Figure:
    """Memory and time over the length."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(8, 3.4), layout="constrained")
    for axes, what in zip(fig.subplots(1, 2), ("bytes", "seconds"), strict=True):
        for name in FORMS:
            axes.plot(numbers["length"], numbers[f"{name}, {what}"], "o-", label=name)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_xlabel("tokens")
        axes.set_title(what, loc="left", fontsize=11)
        axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    return fig
