"""Each tensor on disk once: a state refers to those that the model's own files hold already, bit for bit.

    state.json   "stored": {"/task/model.wte.weight": {"file": "model.safetensors", "key": "wte.weight", "flip": false}}

The model's files have the names and layouts of the public format, so what matches is found by content, not by name: a
tensor as it is, a matrix that the file holds transposed, a stack of which the file has each layer. A few of its numbers
choose the candidate. Then it must be the very memory that was written, or all of its bits must agree.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Executor
from typing import Any, TypeAlias

import torch
from torch import Tensor

Stored: TypeAlias = dict[str, dict[str, Tensor]]  # file -> key -> tensor
BITS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
SMALL = 4096  # bytes below which a tensor is written again: cheaper than to say where it is
PROBE = 16  # numbers that choose a candidate


def find_references(tensors: Mapping[str, Tensor], stored: Stored, threads: Executor) -> dict[str, Any]:
    """For each tensor that the files hold: where it is. `stored` is what was written to them."""
    known: dict[tuple[Any, ...], list[tuple[str, str]]] = {}
    for file, content in stored.items():
        for key, tensor in content.items():
            if tensor.itemsize in BITS and tensor.numel():
                known.setdefault(_probe(tensor), []).append((file, key))
    large = {name: x for name, x in tensors.items() if x.itemsize in BITS and x.nbytes >= SMALL}
    found = threads.map(lambda x: _find(x, known, stored), large.values())
    return {name: where for name, where in zip(large, found, strict=True) if where is not None}


def read_reference(where: Any, stored: Stored) -> Tensor:
    """The tensor that was referred to: a view of the stored one, or a stack of them."""
    if isinstance(where, list):
        return torch.stack([read_reference(part, stored) for part in where])
    tensor = stored[where["file"]][where["key"]]
    return tensor.t() if where["flip"] else tensor


def _find(x: Tensor, known: dict[tuple[Any, ...], list[tuple[str, str]]], stored: Stored) -> Any:
    for flip in (False, True) if x.dim() == 2 else (False,):
        mine = x.t() if flip else x
        for file, key in known.get(_probe(mine), ()):
            theirs = stored[file][key]
            same = (mine.data_ptr(), mine.stride()) == (theirs.data_ptr(), theirs.stride())
            if same or torch.equal(_bits(mine), _bits(theirs)):
                return {"file": file, "key": key, "flip": flip}
    if x.dim() < 3:
        return None
    parts = []
    for part in x:  # the experts of a layer, which the file has one by one
        parts.append(_find(part, known, stored))
        if parts[-1] is None:
            return None
    return parts


def _probe(x: Tensor) -> tuple[Any, ...]:
    """Type, shape and the first numbers: those of the first row for a matrix, in whatever way it lies in memory."""
    row = x[(0,) * (x.dim() - 1)][:PROBE] if x.dim() else x.reshape(1)
    return x.dtype, tuple(x.shape), tuple(_bits(row).tolist())


def _bits(x: Tensor) -> Tensor:
    """The numbers as integers: a NaN equals itself, and 0 is not -0."""
    return x.view(BITS[x.itemsize])
