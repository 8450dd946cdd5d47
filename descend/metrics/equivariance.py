"""How far a network is from moving with its input, or from not minding: for any function of images and any motion.

    T_v x [p] = x[p − v]                          shift by v
    equivariance error    max |f(T x) − T' f(x)|      T' is what the motion does to the output
    invariance error      max |f(T x) − f(x)|

A convolution is equivariant exactly on a circle (circular padding). With zero padding only the interior is; with stride
s only shifts that are multiples of s, and the output moves by v/s. Pooling makes small shifts matter less; global
pooling of circular maps makes them not matter at all. Quarter turns and other rotations change the answer of an
ordinary convolution. The books omit these conditions (S940 3.1), and DLD 4.8 calls invariance what 4.1 rightly calls
equivariance.

Systems: translation-equivariance-invariance
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

Map = Callable[[Tensor], Tensor]


def shift_circular(x: Tensor, v: Sequence[int]) -> Tensor:
    """T_v on a circle: what leaves at one side comes back at the other. v: rows, columns."""
    return x.roll(tuple(v), (-2, -1))


def shift_zeros(x: Tensor, v: Sequence[int]) -> Tensor:
    """T_v on an image of zeros: what leaves is lost."""
    down, right = v
    h, w = x.shape[-2:]
    y = F.pad(x, (max(right, 0), max(-right, 0), max(down, 0), max(-down, 0)))
    return y[..., max(-down, 0) :, max(-right, 0) :][..., :h, :w]


def turn_quarters(x: Tensor, quarters: int = 1) -> Tensor:
    """Quarter turns, counter-clockwise; exact."""
    return x.rot90(quarters, (-2, -1))


def rotate_images(x: Tensor, degrees: float) -> Tensor:
    """Any angle, counter-clockwise, about the centre of images (b, c, h, w), by bilinear interpolation; 0 outside."""
    cos, sin = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    h, w = x.shape[-2:]
    rows = torch.tensor([[cos, -sin * h / w, 0.0], [sin * w / h, cos, 0.0]], dtype=x.dtype, device=x.device)
    at = F.affine_grid(rows.expand(len(x), 2, 3), list(x.shape), align_corners=False)
    return F.grid_sample(x, at, align_corners=False)


def equivariance_error(f: Map, x: Tensor, before: Map, after: Map | None = None, border: int = 0) -> float:
    """max |f(before(x)) − after(f(x))|; `after` is `before` unless told; `border` pixels at every side are left out."""
    gap = (f(before(x)) - (after or before)(f(x))).abs()
    h, w = gap.shape[-2:]
    return float(gap[..., border : h - border, border : w - border].detach().max())


def invariance_error(f: Map, x: Tensor, before: Map) -> float:
    """max |f(before(x)) − f(x)|"""
    return float((f(before(x)) - f(x)).detach().abs().max())


def relative_change(f: Map, x: Tensor, before: Map) -> float:
    """‖f(before(x)) − f(x)‖ / ‖f(x)‖: comparable between functions whose outputs have different sizes."""
    y = f(x).detach()
    return float((f(before(x)).detach() - y).norm() / y.norm())
