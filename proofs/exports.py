"""python -m proofs.exports [models ..]: which model families become graphs (ONNX), and why the others do not.

Every family's TINY configuration, found by discovery, is recorded and held against the model in onnxruntime at other
batch sizes and lengths than those recorded, to 1e-4. A family that has no graph must say so in one line. Without names
the table goes to docs/exports.md; the exit code is 1 where a family fails in another way.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import torch

from descend.engine.hardware import describe_environment
from descend.errors import Mistake
from descend.exports.entries import find_entry, sample_inputs
from descend.exports.onnx import Graph, write_onnx
from descend.models import model_class, names

PAGE = Path(__file__).parents[1] / "docs" / "exports.md"
HEAD = """# Which models become graphs

`python -m proofs.exports` builds every family's smallest configuration, writes it as ONNX, and asks onnxruntime and
the model the same at two batch sizes and, of texts, at two lengths, none of them recorded. *apart* is the largest
difference over max(1, max |y|); 1e-4 is allowed. How to export a model of yours: [export.md](export.md).
"""


@dataclass(frozen=True)
class Outcome:
    """A family and how it ended."""

    name: str
    seconds: float
    computes: str = ""
    graph: Graph | None = None
    reason: str = ""
    fault: str = ""


def build(name: str) -> Any:
    """The smallest configuration of a family, with its default head."""
    torch.manual_seed(0)
    return model_class(name)(import_module(f"descend.models.{name}").TINY).eval()


def try_family(name: str, folder: Path) -> Outcome:
    """Write its graph, or tell why there is none."""
    began = time.perf_counter()
    computes = ""
    try:
        model = build(name)
        entry = find_entry(model, None, sample_inputs(model))
        computes = entry.computes
        graph = write_onnx(entry, folder / f"{name}.onnx")
        (folder / f"{name}.onnx").unlink()
        return Outcome(name, time.perf_counter() - began, computes, graph)
    except Mistake as mistake:
        return Outcome(name, time.perf_counter() - began, computes, reason=str(mistake))
    except Exception as error:
        return Outcome(name, time.perf_counter() - began, computes, fault=f"{type(error).__name__}: {error}")


def walk(families: Iterable[str]) -> list[Outcome]:
    """Family by family, told as they come."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for name in families:
            found.append(outcome := try_family(name, Path(folder)))
            told = f"apart {outcome.graph.apart:.1e}" if outcome.graph else outcome.reason or f"FAULT {outcome.fault}"
            print(f"{name}: {told} ({outcome.seconds:.1f} s)", flush=True)
    return found


def format_page(found: list[Outcome]) -> str:
    """docs/exports.md"""
    here = describe_environment()
    done = [outcome for outcome in found if outcome.graph]
    refused = [outcome for outcome in found if not outcome.graph]
    worst = max((outcome.graph.apart for outcome in done if outcome.graph), default=0.0)
    lines = [
        HEAD,
        f"{len(done)} of {len(found)} families, the largest difference {worst:.1e} "
        f"({here['cpu']}, torch {here['torch']}, {time.strftime('%Y-%m-%d')}).",
        "",
        "| family | the graph computes | inputs | outputs | apart |",
        "|---|---|---|---|---|",
    ]
    for outcome in done:
        assert outcome.graph is not None
        inputs = ", ".join(f"{name} ({' × '.join(axes)})" for name, axes in outcome.graph.inputs.items())
        outputs = ", ".join(outcome.graph.outputs)
        lines.append(f"| {outcome.name} | {outcome.computes} | {inputs} | {outputs} | {outcome.graph.apart:.0e} |")
    lines += [
        "",
        "## Without a graph",
        "",
        "`--to safetensors` writes all of these.",
        "",
        "| family | why |",
        "|---|---|",
    ]
    lines += [f"| {outcome.name} | {outcome.reason or outcome.fault} |" for outcome in refused]
    return "\n".join(lines).replace("|x|", "x") + "\n"


def main(wanted: list[str]) -> int:
    torch.set_num_threads(1)
    found = walk(wanted or names())
    faults = [outcome.name for outcome in found if outcome.fault]
    done = sum(outcome.graph is not None for outcome in found)
    seconds = sum(outcome.seconds for outcome in found)
    print(f"{len(found)} families: {done} exported, {len(found) - done - len(faults)} refused in one line, "
          f"{len(faults)} faults, {seconds:.0f} s")  # fmt: skip
    if not wanted:
        PAGE.write_text(format_page(found), encoding="utf-8")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
