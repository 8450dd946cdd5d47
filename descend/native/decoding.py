"""A transformer's decoding step in one call of compiled code (decoding.cpp), for tensors of a CPU in float32.

    Weights             what a block computes with: its norms and maps, as tensors
    CodedMap            a map whose matrix is codes of 8 bits; x is rounded too, 32 numbers to a step (int8.h)
    NativeStep(...)     the whole model; `step(x, cache, used)` gives the logits after one more token of every sequence

The weights are not copied: the step always computes with those that the model has now. Codes are: they lie otherwise.
The classes with `_fields_` mirror the structs of decoding.cpp.
"""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import POINTER, Structure, byref, c_double, c_int, c_int64, c_void_p
from typing import NamedTuple

import torch
from torch import Tensor

from descend.native.build import library

MOST_ROWS = 64  # with more sequences, torch's own products are as fast
PANEL, GROUP = 16, 32  # of int8.h
ACTIVATIONS = ("gelu-tanh", "gelu", "silu", "relu")


class Norm(NamedTuple):
    """(x − mean) / √(var + eps) · w + b; without b: x / √(mean x² + eps) · w."""

    w: Tensor
    b: Tensor | None
    eps: float


class Map(NamedTuple):
    """x Wᵀ + b, W (out, in)."""

    w: Tensor
    b: Tensor | None


class CodedMap(Map):
    """The same map from codes; `w` is written out, for what reads many tokens at once."""

    codes: Tensor
    steps: Tensor

    @classmethod
    def of(cls, w: Tensor, b: Tensor | None, codes: Tensor, steps: Tensor) -> CodedMap:
        """Of codes (out, in) −127..127 and their steps (out, in / 32) in half precision, laid as int8.h reads them."""
        made = cls(w, b)
        full = -len(codes) % PANEL
        codes, steps = (torch.nn.functional.pad(x, (0, 0, 0, full)) for x in (codes, steps))
        made.codes = (
            (codes.view(-1, PANEL, codes.shape[1] // 4, 4).transpose(1, 2).int() + 128).to(torch.uint8).contiguous()
        )
        made.steps = steps.half().view(-1, PANEL, steps.shape[1]).transpose(1, 2).contiguous()
        return made


def fits_half(steps: Tensor) -> bool:
    """Whether half precision holds these numbers to 11 bits."""
    return bool(((steps.half().float() - steps).abs() <= 2**-11 * steps.abs()).all())


class Weights(NamedTuple):
    """One block; without a gate the feed-forward part is down(f(up(x))), else down(f(gate(x)) · up(x))."""

    norm_1: Norm
    norm_2: Norm
    q: Map
    k: Map
    v: Map
    out: Map
    gate: Map | None
    up: Map
    down: Map

    def tensors(self) -> list[Tensor]:
        return [t for part in self if part is not None for t in part if isinstance(t, Tensor)]


class _Norm(Structure):
    _fields_ = [("w", c_void_p), ("b", c_void_p), ("eps", c_double)]


class _Linear(Structure):
    _fields_ = [
        *((name, c_void_p) for name in ("w", "b")),
        *((name, c_int64) for name in ("inputs", "outputs")),
        *((name, c_void_p) for name in ("codes", "steps")),
    ]


class _Block(Structure):
    _fields_ = [(name, _Norm) for name in ("norm_1", "norm_2")] + [
        (name, _Linear) for name in ("q", "k", "v", "out", "gate", "up", "down")
    ]


class _Model(Structure):
    _fields_ = [
        *((name, c_int64) for name in ("depth", "width", "heads", "kv_heads", "head_size", "hidden", "activation")),
        ("blocks", POINTER(_Block)),
        ("norm", _Norm),
        ("head", _Linear),
    ]


class _Step(Structure):
    _fields_ = [
        *((name, c_int64) for name in ("rows", "places", "length")),
        *((name, c_void_p) for name in ("place", "used", "first", "cos", "sin", "x", "cache", "room", "logits")),
    ]


def pointer(x: Tensor | None) -> int | None:
    return None if x is None else x.data_ptr()


def norm(f: Norm) -> _Norm:
    return _Norm(pointer(f.w), pointer(f.b), f.eps)


def linear(f: Map | None) -> _Linear:
    if f is None:
        return _Linear()
    coded = (pointer(f.codes), pointer(f.steps)) if isinstance(f, CodedMap) else (None, None)
    return _Linear(pointer(f.w), pointer(f.b), f.w.shape[1], f.w.shape[0], *coded)


class NativeStep:
    """All blocks, the last norm and the matrix of the logits."""

    def __init__(self, blocks: Sequence[Weights], last: Norm, head: Map, heads: int, activation: str):
        self.kept = (blocks, last, head)  # the pointers are good as long as these tensors live
        first = blocks[0]
        size = len(first.q.w) // heads
        self.blocks = (_Block * len(blocks))(*(_Block(*map(norm, w[:2]), *map(linear, w[2:])) for w in blocks))
        self.model = _Model(
            len(blocks), first.q.w.shape[1], heads, len(first.k.w) // size, size, len(first.up.w),
            ACTIVATIONS.index(activation), self.blocks, norm(last), linear(head),
        )  # fmt: skip
        self.vocab, self.library, self.room = len(head.w), library(), torch.empty(0)
        if self.library is not None:
            self.library.room.restype = c_int64
            self.library.step.restype = None

    @property
    def usable(self) -> bool:
        """Whether there is compiled code, and the tensors are such as it reads."""
        blocks, last, head = self.kept
        tensors = [t for w in blocks for t in w.tensors()] + [last.w, head.w]
        plain = all(t.device.type == "cpu" and t.dtype == torch.float32 and t.is_contiguous() for t in tensors)
        return self.library is not None and plain and self.model.head_size % 8 == 0

    def step(
        self,
        x: Tensor,
        cache: Tensor,
        used: int | Tensor,
        first: Tensor | None = None,
        rotary: tuple[Tensor, Tensor] | None = None,
        places: Tensor | None = None,
    ) -> Tensor:
        """Logits (b, v). `x` (b, d) is overwritten; `cache` (depth, 2, places, kv_heads, length, k) takes the token.

        `used` counts the tokens that a row has there already, one number or (b,); `places` (b,) says which rows of the
        cache these are (None: all), `first` (b,) what each sees first; `rotary` holds cos and sin (b, k/2).
        """
        assert self.library is not None
        rows, length = len(x), cache.shape[4]
        used = torch.full((rows,), used) if isinstance(used, int) else used
        places = torch.arange(rows) if places is None else places
        needed = self.library.room(byref(self.model), c_int64(rows), c_int64(length))
        if len(self.room) < needed:
            self.room = torch.empty(needed)
        logits, (cos, sin) = x.new_empty(rows, self.vocab), rotary or (None, None)
        tensors = (places, used, first, cos, sin, x, cache, self.room, logits)
        step = _Step(rows, cache.shape[2], length, *map(pointer, tensors))
        self.library.step(byref(self.model), byref(step), c_int(torch.get_num_threads()))
        return logits
