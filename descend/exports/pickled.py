"""What a .pt or .pth of torch.save holds, read with `weights_only`: tensors and plain values, and no code is run.

The numbers themselves are not read: tensors come as their shapes (on the device "meta"). A pickle that would call
anything but what makes tensors is refused, and what it would call is named.
"""

from __future__ import annotations

import re
import warnings
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from descend.errors import Mistake
from descend.exports.contents import Contents, Stored
from descend.weights.tensor_file import DTYPES

CALLS = (r"GLOBAL (\S+)", r"load (?:global|function) (\S+)", r"class (\S+)")
ZIP = b"PK"
DEEPEST = 20
TEXT = 200  # characters of a value that are shown


def open_pickled(path: Path) -> Contents:
    """Tensors by their place in nested tables, "model.head.weight", and the plain values beside them."""
    check_whole(path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found: Any = torch.load(path, map_location="meta", weights_only=True)
    except Exception as error:  # torch lets through whatever a damaged or refused file causes
        raise Mistake(explain_refusal(path, str(error))) from None
    tensors: list[Stored] = []
    values: dict[str, Any] = {}
    for name, value in walk(found):
        if isinstance(value, Tensor):
            dtype = DTYPES.get(value.dtype, str(value.dtype).removeprefix("torch."))
            tensors.append(Stored(name, dtype, tuple(value.shape), value.nbytes))
        else:
            values[name] = value if isinstance(value, bool | int | float | None) else str(value)[:TEXT]
    return Contents(str(path), "torch", tuple(tensors), values)


def check_whole(path: Path) -> None:
    """A zip has the list of its parts at its end: where it is cut short there is none."""
    with path.open("rb") as file:
        head = file.read(2)
    if not head:
        raise Mistake(f"{path} is empty; copy the file again")
    if head == ZIP and not zipfile.is_zipfile(path):
        raise Mistake(f"{path} was cut short: the list of parts at the end of the zip is missing; copy the file again")


def explain_refusal(path: Path, said: str) -> str:
    """One line: what the pickle would have called, or that it is damaged."""
    for pattern in CALLS:
        if found := re.search(pattern, said):
            return (
                f"{path} is a pickle that calls {found[1].rstrip('.')} when it is opened: it holds more than tensors "
                f"and plain values, and is not read; ask for a .safetensors file, or save model.state_dict() alone"
            )
    first = next((line.strip() for line in said.splitlines() if line.strip()), "no reason is given")
    return f"{path} is damaged, or no file of torch.save: {first[:TEXT]}"


def walk(value: Any, name: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """(place, tensor or value) of nested tables and lists."""
    inner: Any = None
    if isinstance(value, Mapping):
        inner = value.items()
    elif isinstance(value, list | tuple):
        inner = enumerate(value)
    if inner is None or depth == DEEPEST:
        yield name or "value", value
        return
    for key, part in inner:
        yield from walk(part, f"{name}.{key}" if name else str(key), depth + 1)
