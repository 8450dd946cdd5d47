"""The precision in which a run multiplies its matrices: float32, or bfloat16 where that is clearly faster and harmless.

    bfloat16 has the exponent of float32 and 8 bits of its 24: range enough for any gradient, three decimal digits

Under bfloat16 the matrix products, convolutions and attention are computed from rounded numbers and added up in
float32. Weights, optimizer, averages, norms, softmax and losses stay in float32, and so does every evaluation: a run is
judged, saved and used in float32, whatever it was trained in.

`auto` takes bfloat16 when all of this holds:

    one player with a first-order rule     line searches and games compare numbers closer than bfloat16 can tell apart
    float32 weights, 100,000 of them       a small model waits for its Python, not for its products
    5e8 multiply-adds in a step            counted on one batch
    a product 1.4 times as fast            both are timed once for each processor, and the answer is kept

The choice is part of a checkpoint: a run continues in the one it started with, on any machine.

Systems: mixed-precision
"""

from __future__ import annotations

import json
import tempfile
import time
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map
from torch.utils.flop_counter import FlopCounterMode

from descend.contracts import JointMove
from descend.engine.hardware import describe_environment, move_batch
from descend.engine.loop import Loop
from descend.engine.parts import Parts
from descend.errors import Mistake
from descend.files import read_json
from descend.native.build import cache_folder
from descend.optim.book_rules import FletcherReeves, HessianFree, PolakRibiere
from descend.optim.rules import LBFGS

FEWEST_PARAMETERS = 100_000
LEAST_WORK = 5e8  # multiply-adds of a forward pass, all micro-batches together
CLEARLY = 1.4  # a product that is faster by less is eaten up by the rounding of its factors
SIDE = 1024  # of the matrices that are timed
EXACT = (LBFGS, FletcherReeves, PolakRibiere, HessianFree)
"""Rules that evaluate a loss again and compare."""


class Products(NamedTuple):
    """Multiply-adds a second of a matrix product, in each type of number."""

    float32: float
    bfloat16: float


def choose_precision(loop: Loop, parts: Parts, where: torch.device) -> torch.dtype:
    """The type of number in which this run multiplies matrices."""
    if loop.precision != "auto":
        return torch.bfloat16 if loop.precision == "bfloat16" else torch.float32
    wins = suits_rounding(parts) and is_faster(where) and count_work(loop, parts, where) >= LEAST_WORK
    return torch.bfloat16 if wins else torch.float32


def name_precision(dtype: torch.dtype) -> str:
    """float32 or bfloat16, as a run records it."""
    return str(dtype).removeprefix("torch.")


def widen_outputs(_: nn.Module, __: object, output: Any) -> Any:
    """A forward hook: what a model hands to its loss is float32, so that softmax and logarithm are, too."""
    return tree_map(lambda x: x.float() if isinstance(x, Tensor) and x.dtype == torch.bfloat16 else x, output)


def suits_rounding(parts: Parts) -> bool:
    """Whether rounded gradients are as good for this run as its own noise makes them anyway."""
    trained = [p for p in parts.task.parameters() if p.requires_grad]
    first_order = len(parts.optims) == 1 and not isinstance(next(iter(parts.optims.values())), EXACT)
    plain = all(p.dtype == torch.float32 for p in trained)
    return first_order and plain and sum(p.numel() for p in trained) >= FEWEST_PARAMETERS


def is_faster(where: torch.device) -> bool:
    """Whether bfloat16 products are clearly faster there."""
    if where.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    if where.type == "mps":
        return False  # not before macOS 14, and not measured: asked for by name only
    found = measure_once(torch.get_num_threads())
    return found.bfloat16 >= CLEARLY * found.float32


def count_work(loop: Loop, parts: Parts, where: torch.device) -> float:
    """Multiply-adds of a step's forward pass: one batch is looked at, and the stream put back to where it was."""
    task = parts.task
    at, training = parts.stream.state_dict(), task.training
    batch = move_batch(next(parts.stream), where)
    task.to(where).eval()
    lstm = {torch.ops.aten.mkldnn_rnn_layer: _lstm_work}
    with torch.no_grad(), FlopCounterMode(display=False, custom_mapping=lstm) as counter:
        move = next(task.moves(batch))
        move.encode() if isinstance(move, JointMove) else move.loss()
    task.train(training)
    parts.stream.load_state_dict(at)
    return counter.get_total_flops() / 2 * loop.accumulate


def _lstm_work(x: torch.Size, w: torch.Size, u: torch.Size, *_: object, **__: object) -> int:
    """Operations of torch's LSTM layer, which its counter leaves out: W x and U h at every step of every text."""
    return 2 * x[0] * x[1] * (w.numel() + u.numel())


@cache
def measure_once(threads: int) -> Products:
    """Both products on this processor with this many threads: from the user's cache folder, or timed and kept there."""
    facts = describe_environment()
    key = f"{facts['cpu']}, torch {facts['torch']}, {threads} threads"
    path = cache_folder() / "products.json"
    known = read_measurements(path)
    if key not in known:
        known[key] = measure_products()
        write_measurements(path, known)
    return known[key]


def measure_products(repeats: int = 3) -> Products:
    """The best of a few products of each type, in turns."""
    best = dict.fromkeys((torch.float32, torch.bfloat16), float("inf"))
    factors: dict[torch.dtype, Tensor] = {dtype: torch.ones(SIDE, SIDE, dtype=dtype) for dtype in best}
    for turn in range(repeats + 1):
        for dtype, x in factors.items():
            began = time.perf_counter()
            x @ x
            if turn:  # the first one also wakes the threads up
                best[dtype] = min(best[dtype], time.perf_counter() - began)
    return Products(*(SIDE**3 / seconds for seconds in best.values()))


def read_measurements(path: Path) -> dict[str, Products]:
    """What was measured before; nothing if the file is missing or damaged."""
    try:
        found = read_json(path)
        return {str(key): Products(float(pair[0]), float(pair[1])) for key, pair in found.items()}
    except (Mistake, ArithmeticError, LookupError, TypeError, ValueError):
        return {}


def write_measurements(path: Path, known: dict[str, Products]) -> None:
    """Written aside and renamed; where nothing can be written, the next run measures again."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.NamedTemporaryFile("w", dir=path.parent, suffix=".json", delete=False, encoding="utf-8") as file:
            json.dump(known, file, indent=1)
        Path(file.name).replace(path)
    except OSError:
        pass
