"""Numbers in a few bits: codes that are whole numbers, and the step between two of them.

    books   q = round((x − min) / Δ),  Δ = (max − min) / 255,  x̂ = q Δ + min               codes 0..255
    signed  q = round(w / s),  s = max |w| / (2^(b−1) − 1),    ŵ = q s                      codes −127..127, or −7..7

MF prints the first form as `x_int8`: codes 0..255 are uint8, and do not fit a signed byte (an erratum). No zero point
is needed, since the minimum is kept beside the step. The second form has one number for each group: a whole tensor, a
row (an output channel), or `group` neighbours of a row; zero stays zero. In both, |x − x̂| ≤ half a step; equal numbers
(a range of zero) have the step 0 and come back exactly. Rounding is to the nearest, ties to even.

    fake    x̂ in the forward pass;  ∂L/∂x = ∂L/∂x̂ inside the range, 0 outside      straight-through gradient

"Inside" is what rounds to a code that there is: up to half a step beyond the last one counts, as in torch.

Systems: post-training-quantization, quantization-aware-training
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

BITS = (2, 3, 4, 5, 6, 7, 8)


class MinMax(NamedTuple):
    """Codes 0..255 (uint8), the step Δ and the minimum; x̂ = codes Δ + minimum."""

    codes: Tensor
    step: Tensor
    minimum: Tensor

    def values(self) -> Tensor:
        """x̂"""
        return self.codes.to(self.step.dtype) * self.step + self.minimum


def min_max_codes(x: Tensor, dim: int | None = None) -> MinMax:
    """The books' form, with one range for all numbers, or one for each place along `dim` (a channel)."""
    check_finite(x)
    others = tuple(range(x.ndim)) if dim is None else tuple(i for i in range(x.ndim) if i != dim % x.ndim)
    low, high = x.amin(others, keepdim=True), x.amax(others, keepdim=True)
    step = (high - low) / 255
    codes = torch.where(step > 0, ((x - low) / step).round().clamp(0, 255), torch.zeros_like(x))
    return MinMax(codes.to(torch.uint8), step, low)


def largest_code(bits: int) -> int:
    """2^(b−1) − 1: codes are as many below zero as above."""
    if bits not in BITS:
        raise ValueError(f"{bits} bits; codes have {BITS[0]} to {BITS[-1]}")
    return 2 ** (bits - 1) - 1


def signed_codes(w: Tensor, bits: int, group: int = 0) -> tuple[Tensor, Tensor]:
    """Codes (out, in) int8 and steps (out, ⌈in / group⌉) of a matrix; group 0 is a row. The last group may be short."""
    check_finite(w)
    out, inputs = w.shape
    size, most = min(group, inputs) or inputs, largest_code(bits)
    grouped = torch.nn.functional.pad(w, (0, -inputs % size)).view(out, -1, size)
    steps = grouped.abs().amax(-1) / most
    codes = torch.where(steps[..., None] > 0, grouped / steps[..., None], 0.0).round().clamp(-most, most)
    return codes.view(out, -1)[:, :inputs].to(torch.int8), steps


def signed_values(codes: Tensor, steps: Tensor, group: int = 0) -> Tensor:
    """ŵ = q s (out, in): every step serves `group` neighbours."""
    inputs = codes.shape[1]
    size = min(group, inputs) or inputs
    if inputs % size == 0:
        return (codes.view(len(codes), -1, size) * steps[..., None]).view(codes.shape)
    return codes * steps.repeat_interleave(size, 1)[:, :inputs]


def pack_nibbles(codes: Tensor) -> Tensor:
    """Two codes −8..7 a byte, stored + 8, the first in the low half: (out, in) int8 -> (out, ⌈in / 2⌉) uint8."""
    shifted = (torch.nn.functional.pad(codes, (0, codes.shape[1] % 2)) + 8).to(torch.uint8)
    return shifted[:, ::2] | (shifted[:, 1::2] << 4)


def unpack_nibbles(packed: Tensor, inputs: int) -> Tensor:
    """The codes again: (out, ⌈in / 2⌉) uint8 -> (out, in) int8."""
    codes = torch.stack([packed & 15, packed >> 4], -1).view(len(packed), -1)[:, :inputs]
    return codes.to(torch.int8) - 8


class _FakeQuantize(torch.autograd.Function):
    """x̂ = s · clamp(round((x − z) / s)) + z; on the way back the gradient passes where nothing was cut off."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, step: Tensor, zero: Tensor | float, least: int, most: int) -> Tensor:
        q = torch.where(step > 0, (x - zero) / step, 0.0).round()
        ctx.save_for_backward((q >= least) & (q <= most))
        return q.clamp_(least, most) * step + zero

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None, None, None]:
        (inside,) = ctx.saved_tensors
        return grads[0] * inside, None, None, None, None


def fake_quantize(x: Tensor, step: Tensor, bits: int) -> Tensor:
    """x̂ = s · clamp(round(x / s)), with the straight-through gradient; `step` is a constant."""
    most = largest_code(bits)
    found: Tensor = _FakeQuantize.apply(x, step.detach(), 0.0, -most, most)
    return found


def fake_quantize_range(x: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """The books' x̂ = Δ · clamp(round((x − low) / Δ), 0, 255) + low, with the straight-through gradient; the range is a
    constant. A range of 0 leaves one number."""
    low, high = low.detach(), high.detach()
    found: Tensor = _FakeQuantize.apply(x, (high - low) / 255, low, 0, 255)
    return found


def fake_quantize_matrix(w: Tensor, bits: int, group: int = 0) -> Tensor:
    """The numbers that `signed_codes` would keep of a matrix (or kernels, a row for each), differentiable."""
    rows = w.flatten(1)
    inputs = rows.shape[1]
    size = min(group, inputs) or inputs
    grouped = torch.nn.functional.pad(rows, (0, -inputs % size)).view(len(w), -1, size)
    steps = grouped.detach().abs().amax(-1, keepdim=True) / largest_code(bits)
    return fake_quantize(grouped, steps, bits).view(len(w), -1)[:, :inputs].view_as(w)


def check_finite(x: Tensor) -> None:
    """A number that is none has no code."""
    if not x.isfinite().all():
        raise ValueError("infinite numbers or NaN among the weights; they have no code")
