"""Dropout by a hash, on CPUs: compiled code (dropout.cpp). `ops/hashed_dropout.py` says what it computes, and does it
without, too."""

from __future__ import annotations

from ctypes import c_double, c_int, c_int64, c_void_p

import torch
from torch import Tensor

from descend.native.build import library
from descend.native.graph import usable


def drop(x: Tensor, key: int, limit: int, scale: float) -> Tensor | None:
    """x where the hash is at least `limit`, times `scale`; None where there is no compiled code for such numbers."""
    if not usable(x):
        return None
    x = x.contiguous()
    y = torch.empty_like(x)
    run = getattr(library(), f"dropout_{str(x.dtype).removeprefix('torch.')}")
    numbers = c_int64(x.numel()), c_int64(key), c_int64(limit), c_double(scale)
    run(*numbers, c_void_p(x.data_ptr()), c_void_p(y.data_ptr()), c_int(torch.get_num_threads()))
    return y
