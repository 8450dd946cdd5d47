"""From a run to a file that other programs open: the formats by name, and what was written.

safetensors   a public folder: weights, config, what goes with them, README
onnx          a graph for onnxruntime
gguf          a language model for llama.cpp
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from descend.errors import Mistake, nearest
from descend.exports import onnx
from descend.exports.entries import find_entry
from descend.exports.gguf import find_type, write_gguf
from descend.exports.public_folder import check_folder, count, merge_adapter, write_folder
from descend.inference.saving import check_out
from descend.inference.trained import Trained, load_trained

ENDINGS = {"safetensors": "", "onnx": ".onnx", "gguf": ".gguf"}


@dataclass(frozen=True)
class Exported:
    """A file or folder that was written."""

    path: str
    format: str
    model: str
    checkpoint: str
    bytes: int
    computes: str = ""
    """Of a graph: what it computes."""
    left_out: str = ""
    """Of a graph: what the program that runs it must do."""
    inputs: dict[str, list[str]] = field(default_factory=dict)
    outputs: list[str] = field(default_factory=list)
    checks: list[dict[str, Any]] = field(default_factory=list)
    """How it was held against the model, and how far they are apart."""

    def as_json(self) -> dict[str, Any]:
        """Without what this format does not have."""
        return {name: value for name, value in asdict(self).items() if value not in ("", {}, [])}


def export_run(
    run: Path, to: str, out: Path, kind: str = "f32", checkpoint: str | int = "best", replace: bool = False
) -> Exported:
    """Write one format; everything that can be refused is refused before the model is read."""
    if to not in ENDINGS:
        raise Mistake(f"--to {to}: choose {', '.join(ENDINGS)}.{nearest(to, ENDINGS)}")
    if to == "safetensors":
        check_folder(out, replace)
    else:
        check_out(out, replace, (ENDINGS[to], ENDINGS[to]))
    if to == "gguf":
        find_type(kind)
    elif kind != "f32":
        raise Mistake(f"--type {kind} is for --to gguf; --to {to} keeps the numbers as they are")
    if to == "onnx":
        onnx.check_installed()
    trained = load_trained(run, checkpoint)
    trained = Trained(merge_adapter(trained.model), trained.folder)
    return {"safetensors": to_folder, "onnx": to_onnx, "gguf": to_gguf}[to](trained, run, out, kind)


def to_folder(trained: Trained, run: Path, out: Path, kind: str) -> Exported:
    write_folder(trained.model, run, trained.folder, out)
    size = sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
    return Exported(str(out), "safetensors", trained.kind, trained.folder.name, size)


def to_onnx(trained: Trained, run: Path, out: Path, kind: str) -> Exported:
    entry = find_entry(trained.model, trained.folder)
    graph = onnx.write_onnx(entry, out)
    left = "; ".join([entry.left_out, *(f"the result {name}, which is no tensor" for name in graph.left_out)])
    return Exported(
        str(out),
        "onnx",
        trained.kind,
        trained.folder.name,
        out.stat().st_size,
        entry.computes,
        left,
        {name: list(axes) for name, axes in graph.inputs.items()},
        list(graph.outputs),
        [{**check.sizes, "apart": check.apart} for check in graph.checks],
    )


def to_gguf(trained: Trained, run: Path, out: Path, kind: str) -> Exported:
    name = run.resolve().name
    apart = write_gguf(trained.model, trained.folder, out, kind, name)
    checks = [{"tensors": len(trained.model.state_dict()), "parameters": count(trained.model), "of rounding": apart}]
    return Exported(str(out), f"gguf {kind}", trained.kind, trained.folder.name, out.stat().st_size, checks=checks)
