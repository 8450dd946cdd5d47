"""A model as a graph of operations, FILE.onnx, that onnxruntime and others run without Python.

torch.export records the forward pass with batch and length left open, torch.onnx translates it, and onnxruntime then
answers beside the model, at other batch sizes and lengths than those recorded:

    max |y_file − y_model| ≤ 1e-4 · max(1, max |y_model|)

A file that does not agree is not left behind. Weights lie in the file itself, up to the 2 GB that the format holds.
"""

from __future__ import annotations

import contextlib
import io
import logging
import os
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from descend.errors import Mistake, as_one_line
from descend.exports.entries import Entry
from descend.exports.traced import BATCH, Given, Traced, flatten_outputs, numbers_as_numbers

TOLERANCE = 1e-4
MOST = 2**31 - 2**24  # bytes of weights in one file
EXTRA = "onnx, onnxscript and onnxruntime are needed: pip install 'descend[onnx]'"
BATCHES = (1, 3)  # two sizes, neither of them recorded
Sizes = Mapping[str, int]
REASONS = {  # what torch says -> what it means
    r"data-dependent expression|unhashable type: non-nested SymInt|failed to unpack the object": (
        "what is computed, or how much of it, depends on the values of tensors, and a graph has no such choice"
    ),
    r"inferred a static shape of (\d+) for dimension inputs\['tensors'\]\[\d+\]\.shape\[1\]": (
        "a loop in it runs over the {0} positions of the text, so that their number cannot vary in a graph"
    ),
    r"\.numpy\(\) is not supported": (
        "a part of it is computed outside of torch (regions are proposed by classic segmentation)"
    ),
    r"No ONNX function found for <OpOverload\(op='([\w.]+)'": "ONNX has no operation like {0}",
    r"takes reverse passes inside of its forward pass": "its forward pass takes derivatives, which a graph does not",
}


class Unrecorded(Mistake):
    """A forward pass that no graph holds."""


@dataclass(frozen=True)
class Agreement:
    """How far file and model are apart at some sizes: the largest difference over max(1, max |y|)."""

    sizes: Sizes
    apart: float


@dataclass(frozen=True)
class Graph:
    """A written graph: the names of its inputs and outputs, and how well it agrees."""

    inputs: dict[str, tuple[str, ...]]
    """Name -> its axes: a number, or the name of one that varies."""
    outputs: tuple[str, ...]
    checks: tuple[Agreement, ...]
    left_out: tuple[str, ...] = ()
    """Results that are no tensors."""

    @property
    def apart(self) -> float:
        return max(check.apart for check in self.checks)


def write_onnx(entry: Entry, path: Path) -> Graph:
    """Write the graph of a model, and hold it against the model."""
    model, given = entry.module, entry.given
    check_installed()
    if sum(p.nbytes for p in model.parameters()) > MOST:
        raise Mistake(f"{path}: a file of ONNX holds 2 GB, and this model has more; --to safetensors has no limit")
    traced = Traced(model.eval(), tuple(part.name for part in given), entry.constants).eval()
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with numbers_as_numbers(model):
            graph = _write(traced, given, aside)
        os.replace(aside, path)
        return graph
    finally:
        aside.unlink(missing_ok=True)


def check_installed() -> None:
    """The three packages of the extra."""
    try:
        import onnx  # noqa: F401
        import onnxruntime  # noqa: F401
        import onnxscript  # noqa: F401
    except ImportError:
        raise Mistake(EXTRA) from None


def _write(traced: Traced, given: Sequence[Given], path: Path) -> Graph:
    with torch.no_grad():
        found = list(flatten_outputs(traced.call([part.example for part in given])))
    outputs = [name for name, tensor in found if tensor is not None]
    left_out = tuple(name for name, tensor in found if tensor is None)
    try:
        record(traced, given, outputs, path)
        session = open_session(path)
    except Unrecorded:
        raise
    except Mistake:  # the optimizer of graphs has its own mistakes
        record(traced, given, outputs, path, optimize=False)
        session = open_session(path)
    checks = [compare(traced, session, given, sizes) for sizes in choose_sizes(given)]
    for check in checks:
        if not check.apart <= TOLERANCE:
            at = ", ".join(f"{name} {size}" for name, size in check.sizes.items())
            raise Mistake(
                f"the graph of {type(traced.model).__name__} differs from the model by {check.apart:.2g} at {at}; "
                f"it is not written"
            )
    inputs = {
        part.name: tuple(str(name or n) for name, n in zip(part.axes, part.example.shape, strict=True))
        for part in given
    }
    return Graph(inputs, tuple(outputs), tuple(checks), left_out)


def record(traced: Traced, given: Sequence[Given], outputs: Sequence[str], path: Path, optimize: bool = True) -> None:
    """Write the graph with torch.onnx."""
    axes = tuple({k: name for k, name in enumerate(part.axes) if name} for part in given)
    with quietly():
        try:
            torch.onnx.export(
                traced,
                tuple(part.example for part in given),
                str(path),
                dynamo=True,
                verbose=False,
                external_data=False,
                optimize=optimize,
                input_names=[part.name for part in given],
                output_names=list(outputs),
                dynamic_shapes=(axes,),
            )
        except Exception as error:  # whatever an operation that has no counterpart, or a size that decides, causes
            raise Unrecorded(f"no graph of {type(traced.model).__name__} can be made: {find_reason(error)}") from None


def choose_sizes(given: Sequence[Given]) -> list[Sizes]:
    """Two sets of sizes, no size that was recorded: batches of 1 and 3, texts a little shorter and much shorter."""
    sizes: list[dict[str, int]] = [{}, {}]
    for part in given:
        for name, size in zip(part.axes, part.example.shape, strict=True):
            if name == BATCH:
                for found, batch in zip(sizes, BATCHES, strict=True):
                    found[name] = batch
            elif name:
                for found, other in zip(sizes, (size - 1, max(2, size // 2)), strict=True):
                    found[name] = other
    return list(sizes)


def open_session(path: Path) -> Any:
    """onnxruntime on the CPU, without its own chatter."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = torch.get_num_threads()
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime has its own exceptions, of no common kind
        raise Mistake(f"onnxruntime does not take the graph: {find_reason(error)}") from None


def compare(traced: Traced, session: Any, given: Sequence[Given], sizes: Sizes) -> Agreement:
    """File and model on the same input."""
    tensors = [part.resize(sizes) for part in given]
    named = {part.name: tensor.numpy() for part, tensor in zip(given, tensors, strict=True)}
    with torch.no_grad():
        ours = traced(*tensors)
    try:
        theirs = session.run(None, {one.name: named[one.name] for one in session.get_inputs()})
    except Exception as error:
        at = ", ".join(f"{name} {size}" for name, size in sizes.items())
        raise Mistake(f"onnxruntime fails at {at}: {find_reason(error)}") from None
    return Agreement(sizes, max(map(measure_apart, ours, map(torch.from_numpy, theirs)), default=0.0))


def measure_apart(ours: Tensor, theirs: Tensor) -> float:
    """max |a − b| / max(1, max |a|); infinite where shapes, or what is not a number, differ."""
    if ours.shape != theirs.shape:
        return float("inf")
    a, b = ours.double(), theirs.double()
    if not torch.equal(a.isfinite(), b.isfinite()):
        return float("inf")
    if not a.isfinite().any():
        return 0.0
    kept = a.isfinite()
    return float((a[kept] - b[kept]).abs().max() / max(1.0, float(a[kept].abs().max())))


def find_reason(error: BaseException) -> str:
    """The cause of a long report of torch or onnxruntime, in one line and in plain words where it is a known one."""
    while error.__cause__ is not None:
        error = error.__cause__
    text = re.sub(r"\x1b\[[0-9;]*m", "", str(error))
    for pattern, words in REASONS.items():
        if found := re.search(pattern, text):
            return words.format(*found.groups())
    lines = [line.strip() for line in text.splitlines() if line.strip()] or [""]
    return as_one_line(f"{type(error).__name__}: {' '.join(lines[:2]) if lines[0].endswith(':') else lines[0]}")[:300]


@contextlib.contextmanager
def quietly() -> Iterator[None]:
    """torch.onnx reports its steps on both streams and in logs; what matters comes as an exception."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with (
            warnings.catch_warnings(),
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(io.StringIO()),
        ):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
