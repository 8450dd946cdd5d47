"""Tensors as one .safetensors file, laid out so that a mapped file can be used as it is.

    8 bytes: length of the header | header: JSON, padded with spaces | the tensors' bytes, without gaps

The package's own writer starts the bytes anywhere; here they start at a multiple of 64, and tensors of a multiple of 64
bytes come first. A mapped tensor is then aligned as a fresh one is: loading needs no copy, and sums over it round
alike. Tensors may share memory; what is not contiguous is copied one at a time. `safetensors.torch.load_file` reads it.

A header is not believed: `read_header` holds every type, shape and place against the size of the file.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from descend.errors import Mistake
from descend.files import explain_error, field, items, parse_json

HEADER = 100_000_000  # bytes: the longest header that the package reads
ALIGNMENT = 64  # bytes: what torch gives to a new tensor
DTYPES = {
    torch.float64: "F64", torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16",
    torch.int64: "I64", torch.int32: "I32", torch.int16: "I16", torch.int8: "I8", torch.bool: "BOOL",
    torch.uint64: "U64", torch.uint32: "U32", torch.uint16: "U16", torch.uint8: "U8", torch.complex64: "C64",
    torch.float8_e4m3fn: "F8_E4M3", torch.float8_e5m2: "F8_E5M2",
}  # fmt: skip
BYTES = {name: dtype.itemsize for dtype, name in DTYPES.items()} | {"F8_E8M0": 1, "F8_E4M3FNUZ": 1, "F8_E5M2FNUZ": 1}


class Entry(NamedTuple):
    """What a header says of a tensor; `start` and `end` count from the end of the header."""

    dtype: str
    shape: tuple[int, ...]
    start: int
    end: int


def read_header(path: Path) -> dict[str, Entry]:
    """The tensors of a .safetensors file, in the order of their bytes; a header that lies is a mistake."""
    try:
        if not path.is_file():
            raise Mistake(f"{path} is not a file")
        size = path.stat().st_size
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if size < 8 or length > min(HEADER, size - 8):
                raise Mistake(f"{path} is damaged or not a safetensors file: a header of {length:,} bytes in {size:,}")
            text = file.read(length)
    except OSError as error:
        raise Mistake(f"{path} cannot be read: {explain_error(error)}") from None
    try:
        header = parse_json(text.decode("utf-8"), f"{path}: the header")
    except UnicodeDecodeError:
        raise Mistake(f"{path} is damaged or not a safetensors file: its header is not a text") from None
    if not isinstance(header, dict):
        raise Mistake(f"{path} is damaged or not a safetensors file: its header is not a JSON object")
    found = {name: _read_entry(header, name, path) for name in header if name != "__metadata__"}
    ordered = dict(sorted(found.items(), key=lambda pair: (pair[1].start, pair[1].end)))
    _check_places(ordered, size - 8 - length, path)
    return ordered


def _read_entry(header: dict[str, Any], name: str, path: Path) -> Entry:
    """One tensor: a type that exists, and as many bytes as type and shape have."""
    where = f"{path}: tensor {name!r}"
    if not isinstance(header[name], dict):
        raise Mistake(f"{where} has no type, shape and place in the header")
    dtype = field(header[name], "dtype", str, where)
    shape = tuple(items(header[name], "shape", int, where))
    places = items(header[name], "data_offsets", int, where)
    if dtype not in BYTES:
        raise Mistake(f"{where} has the type {dtype!r}, which is unknown; known: {', '.join(BYTES)}")
    if min(shape, default=0) < 0:
        raise Mistake(f"{where} has the shape {shape}, which is negative")
    if len(places) != 2 or not 0 <= places[0] <= places[1]:
        raise Mistake(f"{where} lies at {places}, which is no place in a file")
    if math.prod(shape) * BYTES[dtype] != places[1] - places[0]:
        raise Mistake(f"{where} has {places[1] - places[0]:,} bytes, not those of {dtype} {shape}")
    return Entry(dtype, shape, places[0], places[1])


def _check_places(found: Mapping[str, Entry], size: int, path: Path) -> None:
    """The tensors fill the bytes after the header, without gaps, and none lies on another."""
    at = 0
    for name, entry in found.items():
        if entry.start != at:
            fault = "overlaps the one before it" if entry.start < at else "follows a gap"
            raise Mistake(
                f"{path}: tensor {name!r} {fault} (byte {entry.start:,} instead of {at:,}); copy the file again"
            )
        at = entry.end
        if at > size:
            raise Mistake(f"{path}: tensor {name!r} ends beyond the file: it was cut short; copy the file again")
    if at != size:
        raise Mistake(f"{path} has {size - at:,} bytes after its last tensor: it was altered; copy the file again")


def write_tensors(path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None) -> None:
    """Write tensors of the CPU to a file, each in its order of rows. The file is not synced."""
    order = sorted(tensors, key=lambda name: (tensors[name].nbytes % ALIGNMENT > 0, -tensors[name].itemsize, name))
    header: dict[str, object] = {"__metadata__": dict(metadata)} if metadata else {}
    end = 0
    for name in order:
        tensor, start = tensors[name], end
        if tensor.dtype not in DTYPES:
            raise TypeError(f"{name}: a file of tensors has no {tensor.dtype}")
        end += tensor.nbytes
        header[name] = {"dtype": DTYPES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [start, end]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-(8 + len(text)) % ALIGNMENT)
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for name in order:
            file.write(raw_bytes(tensors[name].contiguous()))


def raw_bytes(tensor: Tensor) -> memoryview:
    """The memory of a contiguous tensor of the CPU, as it lies there."""
    flat = tensor.detach().reshape(-1)
    if flat.stride() != (1,):  # a single number, repeated by a stride of 0, counts as contiguous too
        flat = flat.clone(memory_format=torch.contiguous_format)
    return flat.view(torch.uint8).numpy().data


def align(tensor: Tensor) -> Tensor:
    """The tensor itself where it lies as a new one would; else a copy."""
    return tensor if tensor.data_ptr() % ALIGNMENT == 0 else tensor.clone()
