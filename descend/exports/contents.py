"""What a file of weights holds: names, types, shapes and bytes of its tensors, and the words beside them.

    open_contents("model.safetensors")      .gguf, .onnx, .pt and .pth; a run, or a model folder

Only headers are read, and no code is run. A file that is damaged or was cut short is a mistake of one line that names
it and what is missing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from math import prod
from pathlib import Path
from typing import Any

from descend.errors import Mistake, nearest
from descend.files import parse_json, read_json
from descend.weights.checkpoints import resolve_checkpoint
from descend.weights.folder import PARTS, PICKLES, WEIGHTS, find_weights
from descend.weights.tensor_file import read_header


@dataclass(frozen=True)
class Stored:
    """A tensor in a file."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    bytes: int

    @property
    def numbers(self) -> int:
        return prod(self.shape)


@dataclass(frozen=True)
class Contents:
    """What is in a file or a folder."""

    path: str
    format: str
    tensors: tuple[Stored, ...]
    metadata: dict[str, Any] = field(default_factory=dict)
    """What the file says of itself."""
    graph: dict[str, Any] = field(default_factory=dict)
    """Of a graph: inputs, outputs, opset, and how many nodes of each operation."""

    @property
    def numbers(self) -> int:
        return sum(tensor.numbers for tensor in self.tensors)

    @property
    def bytes(self) -> int:
        return sum(tensor.bytes for tensor in self.tensors)

    @property
    def dtypes(self) -> dict[str, int]:
        """How many tensors have each type, the most frequent first."""
        return dict(Counter(tensor.dtype for tensor in self.tensors).most_common())

    def as_json(self) -> dict[str, Any]:
        """Everything, and the totals."""
        totals = {"tensors": len(self.tensors), "numbers": self.numbers, "bytes": self.bytes, "dtypes": self.dtypes}
        found = asdict(self) | {"totals": totals}
        return found if self.graph else {name: value for name, value in found.items() if name != "graph"}


def open_contents(path: str | Path, checkpoint: str | int = "best") -> Contents:
    """What a file, a run's checkpoint or a model folder holds."""
    path = Path(path)
    if path.is_dir():
        return open_folder(resolve_checkpoint(path, checkpoint))
    if not path.is_file():
        raise Mistake(f"{path} does not exist; give a file ({', '.join(READERS)}), a run or a model folder")
    if path.suffix not in READERS:
        hint = nearest(path.suffix, READERS)
        raise Mistake(f"{path}: files of {path.suffix or 'no'} ending are not read.{hint} Known: {', '.join(READERS)}")
    return READERS[path.suffix](path)


def open_safetensors(path: Path) -> Contents:
    """A .safetensors file."""
    tensors = tuple(
        Stored(name, entry.dtype, entry.shape, entry.end - entry.start) for name, entry in read_header(path).items()
    )
    with path.open("rb") as file:  # whole, as the reader of the header has checked
        header = parse_json(file.read(int.from_bytes(file.read(8), "little")).decode("utf-8"), path)
    metadata = header.get("__metadata__", {})
    return Contents(str(path), "safetensors", tensors, metadata if isinstance(metadata, dict) else {})


def open_folder(folder: Path) -> Contents:
    """The weights of a model folder, and of each part of a pipeline."""
    if (folder / PARTS).is_file():
        found = [
            (path.name, open_folder(path)) for path in sorted(folder.iterdir()) if (path / "config.json").is_file()
        ]
        found = [(name, part) for name, part in found if part.tensors]
        tensors = tuple(
            Stored(f"{name}/{one.name}", one.dtype, one.shape, one.bytes)
            for name, part in found
            for one in part.tensors
        )
        kinds = {name: str(part.metadata.get("model", "")) for name, part in found}
        return Contents(str(folder), "pipeline", tensors, kinds)
    if not (folder / "config.json").is_file():
        raise Mistake(f"{folder} is neither a run nor a model folder: it holds no config.json")
    config = read_json(folder / "config.json")
    files = [] if not holds_weights(folder) else find_weights(folder)
    tensors = tuple(tensor for file in files for tensor in open_safetensors(file).tensors)
    named = (config.get("architectures") or [config.get("_class_name") or config.get("model_type")])[:1]
    beside = sorted(path.name for path in folder.iterdir() if path.is_file() and path not in files)
    said = {"model": named[0] if named else None, "weights": [file.name for file in files], "beside": beside}
    return Contents(str(folder), "folder", tensors, said)


def holds_weights(folder: Path) -> bool:
    """Whether there are weights at all: a scheduler of a pipeline has a config and nothing else."""
    return any(folder.glob("*.safetensors*")) or any((folder / name).exists() for name in PICKLES)


def _open_gguf(path: Path) -> Contents:
    from descend.exports.gguf_header import open_gguf

    return open_gguf(path)


def _open_onnx(path: Path) -> Contents:
    from descend.exports.onnx_header import open_onnx

    return open_onnx(path)


def _open_pickled(path: Path) -> Contents:
    from descend.exports.pickled import open_pickled

    return open_pickled(path)


READERS: dict[str, Callable[[Path], Contents]] = {
    Path(WEIGHTS).suffix: open_safetensors,
    ".gguf": _open_gguf,
    ".onnx": _open_onnx,
    ".pt": _open_pickled,
    ".pth": _open_pickled,
}
