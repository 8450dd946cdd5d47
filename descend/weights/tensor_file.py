"""Tensors as one .safetensors file, laid out so that a mapped file can be used as it is.

    8 bytes: length of the header | header: JSON, padded with spaces | the tensors' bytes, without gaps

The package's own writer starts the bytes anywhere; here they start at a multiple of 64, and tensors of a multiple of 64
bytes come first. A mapped tensor is then aligned as a fresh one is: loading needs no copy, and sums over it round
alike. Tensors may share memory; what is not contiguous is copied one at a time. `safetensors.torch.load_file` reads it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

ALIGNMENT = 64  # bytes: what torch gives to a new tensor
DTYPES = {
    torch.float64: "F64", torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16",
    torch.int64: "I64", torch.int32: "I32", torch.int16: "I16", torch.int8: "I8", torch.bool: "BOOL",
    torch.uint64: "U64", torch.uint32: "U32", torch.uint16: "U16", torch.uint8: "U8", torch.complex64: "C64",
    torch.float8_e4m3fn: "F8_E4M3", torch.float8_e5m2: "F8_E5M2",
}  # fmt: skip


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
