"""Attention inside the windows of a map, for training on a CPU: compiled code behind torch operators.

    attention(qkv, bias, window, shift)      softmax(Q Kᵀ / √d_k + B) V,   qkv (b, height, width, 3, heads, d_k)

Height and width are multiples of the window; bias is (heads, window², window²), in float32. Rolling the map, cutting
it into windows and joining them costs no copy: windows.cpp reads and writes the rows where they lie.
`descend.native.training` says whether it can be had for a tensor.
"""

from __future__ import annotations

import math
from ctypes import Structure, byref, c_double, c_int, c_int64, c_void_p
from typing import Any

import torch
from torch import Tensor

from descend.native.training import find_function


class _Windows(Structure):
    _fields_ = [
        *((name, c_int64) for name in ("batch", "height", "width", "heads", "size", "window", "shift")),
        ("scale", c_double),
        *((name, c_void_p) for name in ("qkv", "bias", "dy", "y", "sums", "dqkv", "dbias")),
    ]


def run(window: int, shift: int, back: bool, **parts: Tensor) -> None:
    """Fill y and sums, or dqkv and dbias."""
    b, height, width, _, heads, size = parts["qkv"].shape
    pointers = {name: x.data_ptr() for name, x in parts.items()}
    task = _Windows(b, height, width, heads, size, window, shift, 1 / math.sqrt(size), **pointers)
    find_function("window_attention", parts["qkv"].dtype)(byref(task), c_int(back), c_int(torch.get_num_threads()))


def empty(qkv: Tensor) -> tuple[Tensor, Tensor]:
    """y (b, height, width, heads, d_k), and the logarithm of every row's sum (b, heads, height · width), by windows."""
    b, height, width, _, heads, size = qkv.shape
    return qkv.new_empty(b, height, width, heads, size), new_float32(qkv, b, heads, height * width)


def new_float32(qkv: Tensor, *shape: int) -> Tensor:
    """Room for what is float32 whatever the maps are: sums and the bias's gradient."""
    return qkv.new_empty(shape, dtype=torch.float32)


@torch.library.custom_op("descend::window_attention", mutates_args=())
def attend(qkv: Tensor, bias: Tensor, window: int, shift: int) -> tuple[Tensor, Tensor]:
    """y and the sums."""
    y, sums = empty(qkv)
    run(window, shift, False, qkv=qkv.contiguous(), bias=bias.contiguous(), y=y, sums=sums)
    return y, sums


@attend.register_fake
def _(qkv: Tensor, bias: Tensor, window: int, shift: int) -> tuple[Tensor, Tensor]:
    return empty(qkv)


@torch.library.custom_op("descend::window_attention_backward", mutates_args=())
def attend_backward(
    dy: Tensor, qkv: Tensor, bias: Tensor, y: Tensor, sums: Tensor, window: int, shift: int
) -> tuple[Tensor, Tensor]:
    """dqkv, and dbias of each image (b, heads, t, t)."""
    dy, qkv, bias = dy.contiguous(), qkv.contiguous(), bias.contiguous()
    dqkv, dbias = torch.empty_like(qkv), new_float32(qkv, len(qkv), *bias.shape)
    run(window, shift, True, qkv=qkv, bias=bias, dy=dy, y=y, sums=sums, dqkv=dqkv, dbias=dbias)
    return dqkv, dbias


@attend_backward.register_fake
def _(dy: Tensor, qkv: Tensor, bias: Tensor, y: Tensor, sums: Tensor, window: int, shift: int) -> tuple[Tensor, Tensor]:
    return qkv.new_empty(qkv.shape), new_float32(qkv, len(qkv), *bias.shape)


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    qkv, bias, *ctx.numbers = inputs
    ctx.save_for_backward(qkv, bias, *output)
    ctx.mark_non_differentiable(output[1])


def _back(ctx: Any, dy: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
    dqkv, dbias = attend_backward(dy, *ctx.saved_tensors, *ctx.numbers)
    return dqkv, dbias.sum(0), None, None


attend.register_autograd(_back, setup_context=_keep)


def attention(qkv: Tensor, bias: Tensor, window: int, shift: int) -> Tensor:
    """y (b, height, width, heads, d_k)"""
    return attend(qkv, bias, window, shift)[0]
