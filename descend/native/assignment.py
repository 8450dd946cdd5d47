"""The cheapest assignment by compiled code (assignment.cpp). `ops/detection/hungarian.py` does the same without it."""

from __future__ import annotations

from ctypes import Structure, byref, c_int, c_int64, c_void_p

import torch
from torch import Tensor

from descend.native.build import library


class _Assignment(Structure):
    _fields_ = [
        *((name, c_int64) for name in ("batch", "rows", "columns")),
        *((name, c_void_p) for name in ("cost", "counts", "row_of")),
    ]


def assign_columns(cost: Tensor, counts: Tensor) -> Tensor | None:
    """The row of each of the first `counts` (b) columns of finite costs (b, n, m) -> (b, m), −1 for the others; None
    where there is no compiled code."""
    compiled = library()
    if compiled is None:
        return None
    cost, counts = cost.double().contiguous(), counts.long().contiguous()
    found = torch.empty(cost.shape[0], cost.shape[2], dtype=torch.long)
    task = _Assignment(*cost.shape, cost.data_ptr(), counts.data_ptr(), found.data_ptr())
    compiled.assign_columns(byref(task), c_int(min(torch.get_num_threads(), max(1, len(cost)))))
    return found
