"""descend inspect: what is in a file of weights, a run or a model folder."""

from __future__ import annotations

import json as json_format
from pathlib import Path
from typing import Any

from descend.exports.contents import Contents, open_contents
from descend.verbs.table import format_table, shade_words

LONGEST = 100  # characters of a value that a line shows


def inspect(path: str | Path, checkpoint: str | int = "best") -> dict[str, Any]:
    """The tensors of a file (name, type, shape, bytes), its totals, and what it says of itself. No code is run.

    Args:
        path: a file (.safetensors, .gguf, .onnx, .pt, .pth), a run or a model folder.
        checkpoint: of a run: best, last or a step.
    """
    return open_contents(path, checkpoint).as_json()


def command(path: str, /, *, checkpoint: str = "best", json: bool = False) -> None:
    """List the tensors of a file, and what it says of itself. Only headers are read, and no code is run.

    Args:
        path: a file (.safetensors, .gguf, .onnx, .pt, .pth), a run or a model folder.
        checkpoint: of a run: best, last or a step.
        json: print JSON.

    Examples:
        descend inspect model.safetensors
        descend inspect runs/demo --checkpoint last
        descend inspect digits.onnx --json
    """
    found = open_contents(path, checkpoint)
    if json:
        print(json_format.dumps(found.as_json(), indent=1, ensure_ascii=False))
        return
    print("\n".join(describe(found)))


def describe(found: Contents) -> list[str]:
    """The page: what it is, what it says, the graph's ends, and a row for each tensor."""
    kinds = ", ".join(f"{count} {dtype}" for dtype, count in found.dtypes.items())
    of = f" ({kinds})" if kinds else ""
    lines = [f"{found.path}: {found.format}, {len(found.tensors)} tensors{of}"]
    lines += [f"{found.numbers:,} numbers, {spell_bytes(found.bytes)}"]
    if found.metadata:
        lines += ["", shade_words("what it says", "1")]
        lines += [f"  {name}: {shorten(value)}" for name, value in found.metadata.items()]
    if found.graph:
        lines += ["", shade_words("graph", "1")]
        for name in ("inputs", "outputs"):
            ends = found.graph[name].items()
            lines += [f"  {name[:-1]} {end}: {' × '.join(map(str, sizes))} {dtype}" for end, (dtype, *sizes) in ends]
        opset = ", ".join(f"{domain or 'ai.onnx'} {version}" for domain, version in found.graph["opset"].items())
        most = ", ".join(f"{count} {name}" for name, count in list(found.graph["operations"].items())[:8])
        lines += [f"  opset {opset}; {found.graph['nodes']} nodes: {most}"]
    if found.tensors:
        rows = [[one.name, one.dtype, "×".join(map(str, one.shape)) or "1", one.bytes] for one in found.tensors]
        lines += ["", format_table(["tensor", "type", "shape", "bytes"], rows)]
    return lines


def shorten(value: Any) -> str:
    """A value on one line."""
    text = json_format.dumps(value, ensure_ascii=False) if not isinstance(value, str) else " ".join(value.split())
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def spell_bytes(count: int) -> str:
    """1.2 MB"""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:,.1f} {unit}"
    return f"{count} bytes"
