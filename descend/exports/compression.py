"""A trained model made smaller, and what that gained and cost.

    codes     weights of 8 or 4 bits                    `nn/quantized.py`
    zeros     the smallest weights are 0                `nn/pruning.py`
    student   a smaller model learned from this one     `kinds/taught.py`

Each is judged by what it does here: bytes of the file, and packed; examples (of a model that writes: tokens) a second,
before and after in turn; the run's own scores on its validation data. Less than 5% better is no gain. On a CPU codes
are written out before a product, so they save memory and no time; zeros save neither unless the file is packed.

    latency(b) = b / throughput(b)          how long a batch of b takes, and each of its examples waits

Systems: inference-optimization
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch import nn

from descend.contracts import Batch, HasDecoder, Task
from descend.data.streams.batches import count_examples, slice_examples
from descend.errors import Mistake
from descend.nn.pruning import choose_masks, prune
from descend.nn.quantized import GROUP, quantize
from descend.theory.latency import batch_latency
from descend.weights.folder import find_weights
from descend.weights.pretrained import Pretrained

GAIN = 1.05
"""How many times better is better."""
BATCHES = (1, 4, 16, 64)
ROUNDS, SECONDS = 5, 0.2  # of timing each
PACKED = 2**28  # bytes above which a file is not packed to see how small it gets
WRITTEN = 16  # tokens


@dataclass(frozen=True)
class Shrinking:
    """What to do to a model; pruned first, then rounded."""

    bits: int = 0
    group: int = GROUP
    sparsity: float = 0.0

    def apply(self, model: Pretrained) -> dict[str, Any]:
        """In place; what there is to tell of it."""
        if model.kept_as:
            raise Mistake(f"the model is kept in codes of {model.kept_as.get('bits')} bits; compress the original")
        told: dict[str, Any] = {}
        if self.sparsity:
            told["zeros"] = prune(model, choose_masks(model, self.sparsity))
        if self.bits:
            model.kept_as = quantize(model, self.bits, self.group)
            told |= {"bits": self.bits, "group": self.group, "layers": len(model.kept_as["modules"])}
        return told


@dataclass
class Side:
    """A model before or after."""

    model: Pretrained
    task: Task | None = None
    valid: Iterable[Batch] = ()
    scores: dict[str, float] = field(default_factory=dict)
    rate: float = 0.0
    """Examples a second of the first validation batch."""
    writes: float = 0.0
    """Tokens a second, where the model writes."""
    bytes: int = 0
    packed: int = 0

    def weigh(self, folder: Path) -> None:
        """Bytes of the files of weights, and of the same packed; 0 for what is too large to pack."""
        files = find_weights(folder)
        self.bytes = sum(path.stat().st_size for path in files)
        if self.bytes <= PACKED:
            packer = zlib.compressobj(1)
            self.packed = sum(len(packer.compress(path.read_bytes())) for path in files) + len(packer.flush())


def time_calls(calls: Sequence[Callable[[], object]]) -> list[float]:
    """Seconds a call of each, taken in turn; the median of the rounds."""
    seconds: list[list[float]] = [[] for _ in calls]
    for call in calls:
        call()  # what is made once is not timed
    for _ in range(ROUNDS):
        for call, found in zip(calls, seconds, strict=True):
            count, began = 0, time.perf_counter()
            while not count or time.perf_counter() - began < SECONDS / ROUNDS:
                call()
                count += 1
            found.append((time.perf_counter() - began) / count)
    return [median(found) for found in seconds]


@torch.no_grad()
def time_sides(sides: Sequence[Side], batch: Batch) -> None:
    """Examples a second of each, on this batch."""
    tasks = [side.task.eval() for side in sides if side.task is not None]
    found = time_calls([lambda task=task: task.score(batch) for task in tasks])  # type: ignore[misc]
    for side, seconds in zip(sides, found, strict=True):
        side.rate = count_examples(batch) / seconds


@torch.inference_mode()
def time_writing(sides: Sequence[Side]) -> None:
    """Tokens a second of each, one text at a time, where the models write on from a text."""
    writers = [side.model.eval() for side in sides if isinstance(side.model, HasDecoder)]
    decoders: list[Any] = [model.decoder() for model in writers if not isinstance(model.decoder, nn.Module)]
    if len(decoders) < len(sides):
        return

    def write(decoder: Any) -> None:
        decoder.start(torch.ones(1, 1, dtype=torch.long), torch.zeros(1, dtype=torch.long), WRITTEN)
        for _ in range(WRITTEN - 1):
            decoder.step(torch.ones(1, dtype=torch.long))

    found = time_calls([lambda decoder=decoder: write(decoder) for decoder in decoders])  # type: ignore[misc]
    for side, seconds in zip(sides, found, strict=True):
        side.writes = WRITTEN / seconds


@torch.no_grad()
def measure_curve(task: Task, batch: Batch, sizes: Sequence[int] = BATCHES) -> list[dict[str, float]]:
    """Throughput and latency over the number of examples in a batch, as far as there are so many."""
    task.eval()
    found = []
    for size in (size for size in sizes if size <= count_examples(batch)):
        few = slice_examples(batch, 0, size)
        (seconds,) = time_calls([lambda few=few: task.score(few)])  # type: ignore[misc]
        rate = size / seconds
        found.append({"batch": size, "throughput": rate, "latency_ms": 1000 * batch_latency(size, rate)})
    return found


def say_gain(ratio: float, word: str) -> str:
    """How many times better, or that it is not."""
    return f"{ratio:.2f} times {word}" if ratio >= GAIN else "no gain"


def tabulate(before: Side, after: Side) -> list[dict[str, Any]]:
    """What was measured on both sides, and what it means."""
    rows: list[dict[str, Any]] = []
    for name, smaller in (("bytes", before.bytes), ("packed", before.packed)):
        found = getattr(after, name)
        if smaller and found:
            rows.append({"what": name, "before": smaller, "after": found, "said": say_gain(smaller / found, "smaller")})
    for name, what in (("rate", "examples/s"), ("writes", "tokens/s")):
        slow, fast = getattr(before, name), getattr(after, name)
        if slow and fast:
            rows.append({"what": what, "before": slow, "after": fast, "said": say_gain(fast / slow, "faster")})
    for name in (name for name in before.scores if name in after.scores):
        was, is_ = before.scores[name], after.scores[name]
        change = f"{(is_ - was) / abs(was):+.2%}" if was else ""
        rows.append({"what": name, "before": was, "after": is_, "said": change})
    return rows
