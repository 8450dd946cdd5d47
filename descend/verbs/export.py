"""descend export: a trained model as files that other programs open."""

from __future__ import annotations

import json as json_format
from pathlib import Path
from typing import Any

from descend.exports.formats import Exported, export_run
from descend.own_code import use_code
from descend.verbs.inspect import spell_bytes


def export(
    run: str | Path, to: str, out: str | Path, type: str = "f32", checkpoint: str | int = "best", replace: bool = False
) -> dict[str, Any]:
    """Write a trained model as a public folder, as a graph or for llama.cpp; returns what was written and checked.

    Args:
        run: a run's folder, or a model folder.
        to: safetensors (a folder for descend and transformers), onnx, or gguf.
        out: the folder or file to write.
        type: of gguf: f32, f16, q8_0 or q4_0.
        checkpoint: best, last or a step.
        replace: write `out` anew where it exists.
    """
    return export_run(Path(run), to, Path(out), type, checkpoint, replace).as_json()


def command(
    run: str,
    /,
    *,
    to: str,
    out: str,
    type: str = "f32",
    checkpoint: str = "best",
    replace: bool = False,
    code: str = "",
    json: bool = False,
) -> None:
    """Write a trained model as files that other programs open.

    A graph (onnx) answers beside the model at two batch sizes and two lengths before it is said to be done.

    Args:
        run: a run's folder, or a model folder.
        to: safetensors (a folder for descend and transformers), onnx, or gguf.
        out: the folder or file to write.
        type: of gguf: f32, f16, q8_0 or q4_0.
        checkpoint: best, last or a step.
        replace: write `out` anew where it exists.
        code: the file of a recipe or model of your own, where it is not found by its name.
        json: print JSON.

    Examples:
        descend export runs/demo --to safetensors --out demo
        descend export runs/digits --to onnx --out digits.onnx
        descend export runs/llama --to gguf --type q8_0 --out llama.gguf
    """
    use_code(code)
    found = export_run(Path(run), to, Path(out), type, checkpoint, replace)
    print(json_format.dumps(found.as_json(), indent=1, ensure_ascii=False) if json else "\n".join(describe(found)))


def describe(found: Exported) -> list[str]:
    """What was written, what a graph takes and gives, and how well it agrees."""
    lines = [f"{found.path}: {found.model} ({found.checkpoint}) as {found.format}, {spell_bytes(found.bytes)}"]
    lines += [f"computes  {found.computes}"] if found.computes else []
    lines += [f"input     {name} ({', '.join(axes)})" for name, axes in found.inputs.items()]
    lines += [f"output    {name}" for name in found.outputs]
    lines += [f"left out  {found.left_out}"] if found.left_out else []
    for check in found.checks:
        if "apart" in check:
            at = ", ".join(f"{name} {size}" for name, size in check.items() if name != "apart")
            lines.append(f"checked   {at}: file and model differ by {check['apart']:.1e}")
        else:
            lines.append(
                f"checked   read again: {check['tensors']} tensors,"
                f" errors at most {check['of rounding']:.2f} of a rounding"
            )
    return lines
