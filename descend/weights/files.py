"""Files of named tensors: the names and shapes first, the tensors one by one. Nothing is ever unpickled as code.

A .safetensors file is mapped, so a shard that is larger than memory is read tensor by tensor. A .pth or .pt of
torch.save is read with `weights_only`: tensors, and no code is run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from descend.errors import Mistake
from descend.weights.tensor_file import DTYPES, read_header

PICKLED = (".pth", ".pt")


@dataclass(frozen=True)
class TensorFile:
    """What a file holds: `shapes` and `dtypes` (F32, I64, ..) by name, and `get(name)`."""

    path: Path
    shapes: Mapping[str, tuple[int, ...]]
    dtypes: Mapping[str, str]
    get: Callable[[str], Tensor]


def open_tensors(path: Path) -> TensorFile:
    """The named tensors of one file."""
    if not path.is_file():
        fault = "is not a file" if path.exists() else "does not exist"
        raise Mistake(f"{path} {fault}; give a file of weights (.safetensors, .pth or .pt)")
    if path.suffix == ".safetensors":
        return _open_safetensors(path)
    if path.suffix not in PICKLED:
        raise Mistake(f"{path}: a file of weights ends in .safetensors, .pth or .pt")
    return _open_pickled(path)


def _open_safetensors(path: Path) -> TensorFile:
    header = read_header(path)
    try:
        file: Any = safe_open(path, framework="pt")
    except (SafetensorError, OSError) as error:
        raise Mistake(f"{path} is damaged or not a safetensors file: {error}") from None
    shapes = {name: entry.shape for name, entry in header.items()}
    return TensorFile(path, shapes, {name: entry.dtype for name, entry in header.items()}, file.get_tensor)


def _open_pickled(path: Path) -> TensorFile:
    try:
        found: Any = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # torch lets through whatever a damaged or refused file causes
        first = str(error).strip().partition("\n")[0]
        raise Mistake(f"{path} is damaged, or holds more than tensors and is not read: {first}") from None
    if not isinstance(found, Mapping) or not all(isinstance(x, Tensor) for x in found.values()):
        raise Mistake(f"{path} is not a state dict: names and their tensors; save model.state_dict() alone")
    if strange := next((name for name, x in found.items() if x.dtype not in DTYPES or x.layout != torch.strided), ""):
        raise Mistake(f"{path}: tensor {strange!r} is a {found[strange].dtype}, {found[strange].layout}, and not read")
    dtypes = {name: DTYPES[x.dtype] for name, x in found.items()}
    return TensorFile(path, {name: tuple(x.shape) for name, x in found.items()}, dtypes, found.__getitem__)
