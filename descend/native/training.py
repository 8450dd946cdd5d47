"""Attention and GELU for training on a CPU: compiled code behind torch operators (training.cpp).

    attention(q, k, v, causal)      softmax(scale Q Kᵀ + M) V,   q (b, t, h, k), k and v (b, s, kv_heads, k)
    gelu_tanh(x)                    x σ(2 √(2/π) (x + 0.044715 x³))

Both have a backward pass and stand inside torch.compile. They are the fast form of equations that torch computes too;
`usable(x)` says whether they can be had for such a tensor: float32, or bfloat16 as in mixed precision. Then the factors
of products are rounded to bfloat16; sums, softmax and GELU itself are computed in float32.
"""

from __future__ import annotations

import math
from ctypes import Structure, byref, c_double, c_int, c_int64, c_void_p
from typing import Any

import torch
from torch import Tensor

from descend.native.build import library


def usable(*x: Tensor) -> bool:
    """Whether there is compiled code for such tensors: of one type; in bfloat16 it takes numbers in pairs."""
    first, *others = x
    known = first.dtype == torch.float32 or (first.dtype == torch.bfloat16 and first.shape[-1] % 2 == 0)
    if torch.compiler.is_exporting():  # a graph for other programs is made of torch's own operations
        return False
    return known and first.device.type == "cpu" and all(y.dtype == first.dtype for y in others) and is_built()


def is_built() -> bool:
    """Whether the library can be had. torch.compile asks once instead of tracing the search for a compiler."""
    return library() is not None


# All that torch.compiler.assume_constant_result does, which imports torch's compiler: half a second of every start.
is_built._dynamo_marked_constant = True  # type: ignore[attr-defined]


def find_function(name: str, dtype: torch.dtype) -> Any:
    """The compiled function for this type of number."""
    return getattr(library(), f"{name}_{str(dtype).removeprefix('torch.')}")


class _Heads(Structure):
    _fields_ = [("p", c_void_p), ("batch", c_int64), ("row", c_int64), ("head", c_int64)]


class _Attention(Structure):
    _fields_ = [
        *((name, c_int64) for name in ("batch", "heads", "kv_heads", "t", "s", "size", "causal")),
        ("scale", c_double),
        *((name, _Heads) for name in ("q", "k", "v", "y", "dy", "dq", "dk", "dv")),
        ("sums", c_void_p),
    ]


def dense(x: Tensor) -> Tensor:
    """The same numbers with a dense last dimension."""
    return x if x.stride(-1) == 1 else x.contiguous()


def run(sums: Tensor, causal: bool, scale: float, *heads: Tensor) -> None:
    """The forward pass for q, k, v, y; the backward pass when dy, dq, dk, dv follow."""
    q, k = heads[:2]
    sizes = len(q), q.shape[2], k.shape[2], q.shape[1], k.shape[1], q.shape[3], causal
    parts = [_Heads(x.data_ptr(), *x.stride()[:3]) for x in heads]
    parts += [_Heads()] * (8 - len(parts))
    task = _Attention(*sizes, scale, *parts, sums.data_ptr())
    find_function("attention", q.dtype)(byref(task), c_int(len(heads) > 4), c_int(torch.get_num_threads()))


def empty(q: Tensor) -> tuple[Tensor, Tensor]:
    """y (b, t, h, k), and the logarithm of every row's sum (b, h, t), which is float32."""
    return q.new_empty(q.shape), q.new_empty(len(q), q.shape[2], q.shape[1], dtype=torch.float32)


@torch.library.custom_op("descend::attention", mutates_args=())
def attend(q: Tensor, k: Tensor, v: Tensor, causal: bool, scale: float) -> tuple[Tensor, Tensor]:
    """y and the sums."""
    y, sums = empty(q)
    run(sums, causal, scale, dense(q), dense(k), dense(v), y)
    return y, sums


@attend.register_fake
def _(q: Tensor, k: Tensor, v: Tensor, causal: bool, scale: float) -> tuple[Tensor, Tensor]:
    return empty(q)


@torch.library.custom_op("descend::attention_backward", mutates_args=())
def attend_backward(
    dy: Tensor, q: Tensor, k: Tensor, v: Tensor, y: Tensor, sums: Tensor, causal: bool, scale: float
) -> tuple[Tensor, Tensor, Tensor]:
    """dq, dk and dv."""
    found = [x.new_empty(x.shape) for x in (q, k, v)]
    run(sums, causal, scale, dense(q), dense(k), dense(v), y, dense(dy), *found)
    return found[0], found[1], found[2]


@attend_backward.register_fake
def _(
    dy: Tensor, q: Tensor, k: Tensor, v: Tensor, y: Tensor, sums: Tensor, causal: bool, scale: float
) -> tuple[Tensor, ...]:
    return tuple(x.new_empty(x.shape) for x in (q, k, v))


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    q, k, v, *ctx.numbers = inputs
    ctx.save_for_backward(q, k, v, *output)
    ctx.mark_non_differentiable(output[1])


def _back(ctx: Any, dy: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
    return (*attend_backward(dy, *ctx.saved_tensors, *ctx.numbers), None, None)


attend.register_autograd(_back, setup_context=_keep)


def attention(q: Tensor, k: Tensor, v: Tensor, causal: bool, scale: float | None = None) -> Tensor:
    """y (b, t, h, k); causal: no query sees a key after it, and the last query meets the last key."""
    return attend(q, k, v, causal, 1 / math.sqrt(q.shape[3]) if scale is None else scale)[0]


@torch.library.custom_op("descend::gelu_tanh", mutates_args=())
def gelu_tanh(x: Tensor) -> Tensor:
    """The value."""
    x = x.contiguous()
    y = torch.empty_like(x)
    numbers = c_int64(x.numel()), c_int(torch.get_num_threads())
    find_function("gelu_tanh", x.dtype)(c_void_p(x.data_ptr()), None, c_void_p(y.data_ptr()), *numbers)
    return y


@torch.library.custom_op("descend::gelu_tanh_backward", mutates_args=())
def gelu_tanh_backward(dy: Tensor, x: Tensor) -> Tensor:
    """dy times the slope at x."""
    x, dy = x.contiguous(), dy.contiguous()
    y, numbers = torch.empty_like(x), (c_int64(x.numel()), c_int(torch.get_num_threads()))
    find_function("gelu_tanh", x.dtype)(*(c_void_p(t.data_ptr()) for t in (x, dy, y)), *numbers)
    return y


@gelu_tanh.register_fake
def _(x: Tensor) -> Tensor:
    return x.new_empty(x.shape)


@gelu_tanh_backward.register_fake
def _(dy: Tensor, x: Tensor) -> Tensor:
    return x.new_empty(x.shape)


gelu_tanh.register_autograd(
    lambda ctx, dy: gelu_tanh_backward(dy, *ctx.saved_tensors),
    setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
)
