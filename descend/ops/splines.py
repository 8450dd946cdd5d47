"""Monotone rational-quadratic splines: a function that rises through given knots with given slopes, and its inverse.

    between knots k and k + 1:  w = x_{k+1} − x_k, h = y_{k+1} − y_k, s = h/w, σ = d_{k+1} + d_k − 2s, ξ = (x − x_k)/w

    y = y_k + h (s ξ² + d_k ξ(1−ξ)) / (s + σ ξ(1−ξ))
    dy/dx = s² (d_{k+1} ξ² + 2 s ξ(1−ξ) + d_k (1−ξ)²) / (s + σ ξ(1−ξ))²

    inverse:  ξ = 2c / (−b − √(b² − 4ac)),  with η = y − y_k
              a = h (s − d_k) + η σ,  b = h d_k − η σ,  c = −s η

Outside of the first and the last knot both are the identity, so the knots go from (−B, −B) to (B, B) and the slopes at
both ends are 1. (Durkan et al., Neural Spline Flows; the books ask for a spline-like monotone function and give none.)

Systems: general-coupling-flow
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class Knots(NamedTuple):
    """Places x and y (.., K+1), rising from −B to B, and slopes d > 0 there (.., K+1), 1 at both ends."""

    x: Tensor
    y: Tensor
    d: Tensor


class Piece(NamedTuple):
    """The numbers of the piece that each point is in."""

    x: Tensor
    y: Tensor
    w: Tensor
    h: Tensor
    d: Tensor
    d_next: Tensor


def place_knots(numbers: Tensor, bound: float, least: float = 1e-3) -> Knots:
    """Knots from 3K − 1 free numbers (.., 3K − 1): K widths and K heights by softmax, K − 1 slopes by softplus.

    No width, height (as a share) or slope is below `least`; zeros give the identity.
    """
    k = (numbers.shape[-1] + 1) // 3
    widths, heights, slopes = numbers.split([k, k, k - 1], dim=-1)
    x, y = (space(part, bound, least) for part in (widths, heights))
    one = torch.log(torch.expm1(torch.tensor(1 - least, dtype=torch.float64))).item()  # softplus of it is 1 − least
    inner = least + torch.nn.functional.softplus(slopes + one)
    return Knots(x, y, torch.nn.functional.pad(inner, (1, 1), value=1.0))


def space(numbers: Tensor, bound: float, least: float) -> Tensor:
    """K free numbers -> K + 1 places from −bound to bound."""
    shares = least + (1 - least * numbers.shape[-1]) * numbers.softmax(-1)
    places = 2 * bound * shares.cumsum(-1)[..., :-1] - bound
    places = torch.nn.functional.pad(places, (1, 0), value=-bound)
    return torch.nn.functional.pad(places, (0, 1), value=bound)


def bend(x: Tensor, knots: Knots) -> tuple[Tensor, Tensor]:
    """y and log dy/dx at the points x (..)."""
    inside = (x > knots.x[..., 0]) & (x < knots.x[..., -1])
    p = find_piece(x, knots.x, knots)
    xi = ((x - p.x) / p.w).clamp(0, 1)
    y = p.y + p.h * rise(xi, p)
    return torch.where(inside, y, x), torch.where(inside, log_slope(xi, p), 0.0)


def unbend(y: Tensor, knots: Knots) -> tuple[Tensor, Tensor]:
    """The inverse: x and log dx/dy at the points y (..)."""
    inside = (y > knots.y[..., 0]) & (y < knots.y[..., -1])
    p = find_piece(y, knots.y, knots)
    s, eta = p.h / p.w, (y - p.y).clamp(min=0)
    sigma = p.d_next + p.d - 2 * s
    a, b, c = p.h * (s - p.d) + eta * sigma, p.h * p.d - eta * sigma, -s * eta
    root = (b.square() - 4 * a * c).clamp(min=0).sqrt()
    xi = (2 * c / (-b - root)).clamp(0, 1)
    x = p.x + xi * p.w
    return torch.where(inside, x, y), torch.where(inside, -log_slope(xi, p), 0.0)


def find_piece(value: Tensor, places: Tensor, knots: Knots) -> Piece:
    """The piece whose places are around each value; the first or last for values outside."""
    last = places.shape[-1] - 2
    if torch.compiler.is_exporting():  # ONNX has no search
        found = (places <= value[..., None]).sum(-1, keepdim=True)
    else:
        found = torch.searchsorted(places.detach(), value.detach()[..., None].contiguous(), right=True)
    k = found.sub(1).clamp(0, last)
    both = torch.cat([k, k + 1], -1)
    (x, x_next), (y, y_next), (d, d_next) = (part.gather(-1, both).unbind(-1) for part in knots)
    return Piece(x, y, x_next - x, y_next - y, d, d_next)


def rise(xi: Tensor, p: Piece) -> Tensor:
    """(y − y_k) / h at ξ."""
    s, between = p.h / p.w, xi * (1 - xi)
    return (s * xi.square() + p.d * between) / (s + (p.d_next + p.d - 2 * s) * between)


def log_slope(xi: Tensor, p: Piece) -> Tensor:
    """log dy/dx at ξ."""
    s, between = p.h / p.w, xi * (1 - xi)
    above = p.d_next * xi.square() + 2 * s * between + p.d * (1 - xi).square()
    return 2 * s.log() + above.log() - 2 * (s + (p.d_next + p.d - 2 * s) * between).log()
