"""Sums, maxima and attention over the edges of a graph, on CPUs: compiled code (graph.cpp) for `descend.ops.graph`.

What it computes is said there, and done there without a compiler, too. A pair leads from a source to a target; it comes
in the order of its targets (`starts`, `columns`: the sources, `order`: numbers of the pairs), see `Incidence`.
"""

from __future__ import annotations

from ctypes import Structure, byref, c_int, c_int64, c_void_p
from typing import Any, NamedTuple

import torch
from torch import Tensor

from descend.native.build import library

TYPES = (torch.float32, torch.float64)


class Pairs(NamedTuple):
    """Pairs in the order of their targets."""

    starts: Tensor
    columns: Tensor
    order: Tensor


def usable(*x: Tensor) -> bool:
    """Whether there is compiled code for such numbers, all of one type."""
    first = x[0].dtype
    plain = first in TYPES and all(y.dtype == first and y.device.type == "cpu" for y in x)
    traced = torch.compiler.is_compiling() or torch._C._functorch.peek_interpreter_stack() is not None
    return plain and not traced and library() is not None


def group(by: Tensor, n: int) -> tuple[Tensor, Tensor] | None:
    """The places of numbers in 0..n-1 in their order, and where each number starts (n + 1); None: not to be had."""
    compiled = None if by.device.type != "cpu" or torch.compiler.is_compiling() else library()
    if compiled is None:
        return None
    by = by.long().contiguous()
    order, starts = torch.empty_like(by), torch.empty(n + 1, dtype=torch.long)
    pointers = (c_void_p(x.data_ptr()) for x in (by, order, starts))
    if not compiled.graph_group(c_int64(len(by)), c_int64(n), *pointers):
        raise IndexError(f"an edge names node {int(by.max()) if int(by.min()) >= 0 else int(by.min())} of {n} nodes")
    return order, starts


def call(name: str, dtype: torch.dtype, *arguments: Tensor | int | None) -> None:
    """A compiled function for this type of number: sizes, then pointers, then the number of threads."""
    found = getattr(library(), f"graph_{name}_{str(dtype).removeprefix('torch.')}")
    found(
        *(c_int64(x) if isinstance(x, int) else c_void_p(None if x is None else x.data_ptr()) for x in arguments),
        c_int(torch.get_num_threads()),
    )


def sum_pairs(pairs: Pairs, weight: Tensor | None, x: Tensor) -> Tensor:
    """y_i = Σ_k w_k x_{c_k} of rows (s, d) and weights (e) -> (n, d)"""
    x, weight = x.contiguous(), None if weight is None else weight.contiguous()
    y = x.new_empty(len(pairs.starts) - 1, x.shape[1])
    call("sum", x.dtype, *y.shape, pairs.starts, pairs.columns, pairs.order, weight, x, y)
    return y


def dot_pairs(left: Tensor, right: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """a_{left_k} · b_{right_k} of rows (.., d) -> (e)"""
    left, right, a, b = left.contiguous(), right.contiguous(), a.contiguous(), b.contiguous()
    out = a.new_empty(len(left))
    call("dots", a.dtype, len(left), a.shape[1], left, right, a, b, out)
    return out


def max_pairs(pairs: Pairs, x: Tensor) -> tuple[Tensor, Tensor]:
    """y_i = max_k x_{c_k} of rows (s, d), and how many of the k are as large, (n, d) both."""
    x = x.contiguous()
    y = x.new_empty(len(pairs.starts) - 1, x.shape[1])
    ties = torch.empty_like(y)
    call("max", x.dtype, *y.shape, pairs.starts, pairs.columns, x, y, ties)
    return y, ties


def max_pairs_backward(reverse: Pairs, x: Tensor, y: Tensor, ties: Tensor, dy: Tensor) -> Tensor:
    """dx; the pairs are those of the sources."""
    x, dy = x.contiguous(), dy.contiguous()
    dx = torch.empty_like(x)
    call("max_back", x.dtype, *x.shape, reverse.starts, reverse.columns, x, y, ties, dy, dx)
    return dx


class _Attention(Structure):
    _fields_ = [
        *((name, c_int64) for name in ("n", "heads", "size")),
        *((name, c_void_p) for name in ("starts", "columns", "order")),
        ("sources", c_int64),
        *((name, c_void_p) for name in ("starts_back", "columns_back", "order_back")),
        *((name, c_void_p) for name in ("z", "keep", "h", "share", "y", "dy", "dz", "dh")),
    ]


def describe(pairs: Pairs, reverse: Pairs | None, **parts: Tensor | None) -> Any:
    """The structure of graph.cpp; what is not given is a null pointer."""
    h = parts["h"]
    assert h is not None
    task = _Attention(n=len(pairs.starts) - 1, heads=h.shape[1], size=h.shape[2], sources=len(h))
    back = {} if reverse is None else {f"{name}_back": x for name, x in reverse._asdict().items()}
    for name, x in (*pairs._asdict().items(), *back.items(), *parts.items()):
        setattr(task, name, None if x is None else x.data_ptr())
    return task


def run(task: Any, name: str, dtype: torch.dtype) -> None:
    """One of the two passes."""
    found = getattr(library(), f"graph_{name}_{str(dtype).removeprefix('torch.')}")
    found(byref(task), c_int(torch.get_num_threads()))


def attend(pairs: Pairs, z: Tensor, keep: Tensor | None, h: Tensor) -> tuple[Tensor, Tensor]:
    """y (n, heads, c) of scores (e, heads) and values (s, heads, c), and the shares (e, heads)."""
    z, h = z.contiguous(), h.contiguous()
    y, share = h.new_empty(len(pairs.starts) - 1, *h.shape[1:]), torch.empty_like(z)
    run(describe(pairs, None, z=z, keep=keep, h=h, share=share, y=y), "attend", h.dtype)
    return y, share


def attend_backward(
    pairs: Pairs, reverse: Pairs, keep: Tensor | None, h: Tensor, share: Tensor, dy: Tensor
) -> tuple[Tensor, Tensor]:
    """dz and dh."""
    h, dy = h.contiguous(), dy.contiguous()
    dz, dh = torch.empty_like(share), torch.empty_like(h)
    parts = {"keep": keep, "h": h, "share": share, "dy": dy, "dz": dz, "dh": dh}
    run(describe(pairs, reverse, **parts), "attend_back", h.dtype)
    return dz, dh
