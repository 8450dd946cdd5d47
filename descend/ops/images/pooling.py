"""Pooling: one number for each window, channel by channel; nothing is learned.

    max         y[i] = max_u x[i S + u]              the gradient goes to the arg max alone
    average     y[i] = (1/K^N) Σ_u x[i S + u]
    global      y[c] = mean of map c                 (b, C, n..) -> (b, C) for any size; invariant to circular shifts
    channels    y[g] = max_{c in g} x[c]  or  √(Σ_{c in g} x[c]²)       over filters, at every place: no matter which
                                                                        filter of the group (phase, direction) fired

`stride` is S; the window K moves by its own size unless told otherwise. Max pooling pads with −∞: the padding never
wins. Any number of axes: all axes after the channels are pooled. Fast forms: torch's max_pool2d, avg_pool2d.

Errata: DLD 4.5 prints y[i, j] = pool x[i + u, j + v] without a stride; so printed it keeps the resolution, which falls
only with S > 1. MF (22.14) prints 56 for a 3×3 window with stride 2 on 112 pixels; that is 55, and 56 with padding 1,
which ResNet has. DLN: pooling has no padding; then P = 0.

Systems: pooling
"""

from __future__ import annotations

import math

from torch import Tensor

from descend.ops.images.convolution import Size, Slide, windows


def max_pool(x: Tensor, window: Size, stride: Size | None = None, padding: Size = 0) -> Tensor:
    """The largest of each window: (b, c, n..) -> (b, c, o..)."""
    axes = x.dim() - 2
    slide = Slide(window if stride is None else stride, padding)
    return windows(x, window, axes, slide, -math.inf).flatten(-axes).amax(-1)


def average_pool(x: Tensor, window: Size, stride: Size | None = None) -> Tensor:
    """The mean of each window: (b, c, n..) -> (b, c, o..)."""
    axes = x.dim() - 2
    return windows(x, window, axes, Slide(window if stride is None else stride)).flatten(-axes).mean(-1)


def global_average_pool(x: Tensor) -> Tensor:
    """The mean of each map: (b, c, n..) -> (b, c)."""
    return x.flatten(2).mean(-1)


def channel_max(x: Tensor, group: int) -> Tensor:
    """The largest of every `group` neighbouring channels: (b, c, ..) -> (b, c / group, ..)."""
    return by_group(x, group).amax(2)


def channel_norm(x: Tensor, group: int) -> Tensor:
    """The length √Σ x² of every `group` neighbouring channels: (b, c, ..) -> (b, c / group, ..)."""
    return by_group(x, group).norm(dim=2)


def by_group(x: Tensor, group: int) -> Tensor:
    if x.shape[1] % group:
        raise ValueError(f"{x.shape[1]} channels cannot be cut into groups of {group}")
    return x.unflatten(1, (-1, group))
