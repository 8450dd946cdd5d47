"""A chain of affine flow layers for training on a CPU: compiled code (affine.cpp) for `descend.nn.flow.fused`.

The layers are described by a table of 64-bit words, a row each, as affine.cpp's `Layer` has them:

    given_at, given, moved_at, moved, levels, width, limit (a double), and LEVELS pointers each to w, b, mask, dw, db
"""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import CDLL, c_int64, c_void_p
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from descend.native.build import library

LEVELS = 8
W, B, MASK, DW, DB = (7 + LEVELS * k for k in range(5))  # first words of the pointers
WORDS = 7 + LEVELS * 5
PADDED = 16
MOST = 2**23  # products of a hidden layer beyond which torch's, which share threads, are as fast


class Shape(NamedTuple):
    """The sizes of one layer."""

    given_at: int
    given: int
    moved_at: int
    moved: int
    levels: int
    width: int

    def kept(self, n: int, size: int) -> int:
        """Numbers that n points keep for the backward pass."""
        wide = -(-self.width // PADDED) * PADDED
        return n * (size + (self.levels - 1) * wide + 2 * self.moved)


def usable(x: Tensor, shapes: Sequence[Shape], parameters: Sequence[Tensor]) -> bool:
    """Whether there is compiled code for such a chain, and it is worth while."""
    levels = shapes[0].levels
    small = all(shape.levels == levels and len(x) * shape.width**2 <= MOST for shape in shapes)
    if not small or not 2 <= levels <= LEVELS or x.dtype != torch.float32 or len(x) == 0 or library() is None:
        return False
    return all(p.dtype == torch.float32 and p.is_contiguous() for p in parameters)


def make_table(
    shapes: Sequence[Shape], limits: Sequence[float], parameters: Sequence[Tensor], masks: Sequence[Tensor | None]
) -> np.ndarray:
    """A row for each layer; the parameters are w and b of every level in turn, the masks one for each w, or None."""
    table = np.zeros((len(shapes), WORDS), dtype=np.int64)
    table[:, :6] = shapes
    table[:, 6] = np.array(limits, dtype=np.float64).view(np.int64)
    point(table, W, np.array([p.data_ptr() for p in parameters[0::2]], dtype=np.int64))
    point(table, B, np.array([p.data_ptr() for p in parameters[1::2]], dtype=np.int64))
    point(table, MASK, np.array([0 if m is None else m.data_ptr() for m in masks], dtype=np.int64))
    return table


def point(table: np.ndarray, first: int, pointers: np.ndarray) -> None:
    """Write a pointer for each level of each layer, which all have as many levels."""
    levels = int(table[0, 4])
    table[:, first : first + levels] = pointers.reshape(len(table), levels)


def forward(table: np.ndarray, shapes: Sequence[Shape], x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """z (n, D), log_det (n), and what the backward pass needs."""
    n, size = x.shape
    z = x.clone(memory_format=torch.contiguous_format)
    log_det, memory = x.new_empty(n), x.new_empty(sum(shape.kept(n, size) for shape in shapes))
    pointers = (c_void_p(t.data_ptr()) for t in (memory, z, log_det))
    _library().affine_forward(c_void_p(table.ctypes.data), c_int64(len(table)), c_int64(n), c_int64(size), *pointers)
    return z, log_det, memory


def backward(
    table: np.ndarray, z: Tensor, memory: Tensor, grad: Tensor, grad_log_det: Tensor, parameters: Sequence[Tensor]
) -> tuple[Tensor, list[Tensor]]:
    """∂x, and the gradients of the parameters in their order."""
    n, size = z.shape
    sizes = [p.numel() for p in parameters]
    flat = torch.empty(sum(sizes))
    starts = np.cumsum([0, *sizes[:-1]]) * flat.itemsize + flat.data_ptr()
    point(table, DW, starts[0::2])
    point(table, DB, starts[1::2])
    dx, slope = grad.clone(memory_format=torch.contiguous_format), grad_log_det.contiguous()
    pointers = (c_void_p(t.data_ptr()) for t in (memory, z, dx, slope))
    _library().affine_backward(c_void_p(table.ctypes.data), c_int64(len(table)), c_int64(n), c_int64(size), *pointers)
    parts = flat.split(sizes)
    return dx, [part.view(p.shape) if p.dim() > 1 else part for part, p in zip(parts, parameters, strict=True)]


def _library() -> CDLL:
    found = library()
    assert found is not None
    return found
