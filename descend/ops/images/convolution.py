"""Convolution and cross-correlation in any number of dimensions: four forms of one linear map.

    convolution          (x * k)(n) = Σ_i k(i) x(n − i)                 flips k; commutes
    cross-correlation    (x ⋆ k)(n) = Σ_i k(i) x(n + i)                 no flip; what a "convolutional" network computes
    layer                y[o, i] = b[o] + Σ_c Σ_u w[o, c, u] x[c, i S + u D − P]            x is 0 outside; i, u are N-D

    S stride, D dilation, P padding, each one number or one for each axis. G groups: output channel o sees only the
    C_in / G input channels of its group; G = 1 is the dense layer, G = C_in is depthwise.

    readable    `layer`             windows of x (a strided view), one einsum: the sums above, letter by letter
    columns     `layer_by_columns`  im2col: the windows become the columns of a matrix, one product of matrices
    matrix      `matrix`            M with vec(y) = M vec(x): 0 where a pixel is not seen (local connectivity), the same
                                    C_out C_in/G K^N numbers in every row block (sharing). With S = 1 it is Toeplitz on
                                    one axis, doubly block Toeplitz on two
    fast        torch.nn.functional.conv1d, conv2d, conv3d

All four are proven equal. `backward` is the layer's gradient by hand: the input's is the transposed convolution.

Errata, and the form taken here: DLN prints the middle term of the cross-correlation as k(0) x(0), it is k(0) x(n); its
2-D form x(H + k_h, W + k_w) has the image's size where the position x(h + k_h, w + k_w) is meant; K/2 is ⌊K/2⌋; its
first layer equation runs over i = 1..C_out−1, one filter short. DLD 4.4 sums c1 = 1..C_in, read 0..C_in−1. MF (22.1)
writes x * w for what is a cross-correlation, and (22.6) omits the bias that it counts; (22.8) omits the sum over the
group's channels.

Systems: convolution-and-cross-correlation, conv2d-layer, conv-as-structured-matrix, grouped-and-depthwise-convolution
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

Size = int | Sequence[int]
"""One number for all axes, or one for each."""


class Slide(NamedTuple):
    """How a kernel moves: stride, padding, dilation (one number, or one for each axis) and groups of channels."""

    stride: Size = 1
    padding: Size = 0
    dilation: Size = 1
    groups: int = 1


ONE_BY_ONE = Slide()


def each(size: Size, axes: int) -> tuple[int, ...]:
    """One number for every axis."""
    found = (size,) * axes if isinstance(size, int) else tuple(size)
    if len(found) != axes:
        raise ValueError(f"{len(found)} sizes {found} for {axes} axes; give one number, or one for each axis")
    return found


def pad_axes(x: Tensor, padding: Size, axes: int, value: float = 0.0) -> Tensor:
    """P values on both sides of each of the last axes."""
    sides = [p for p in reversed(each(padding, axes)) for _ in range(2)]
    return F.pad(x, sides, value=value) if any(sides) else x


def windows(x: Tensor, kernel: Size, axes: int, slide: Slide = ONE_BY_ONE, value: float = 0.0) -> Tensor:
    """Every window of the last axes: (.., n_1 .. n_N) -> (.., o_1 .. o_N, K_1 .. K_N), a view of padded x."""
    x = pad_axes(x, slide.padding, axes, value)
    sizes = zip(each(kernel, axes), each(slide.stride, axes), each(slide.dilation, axes), strict=True)
    first = x.dim() - axes
    for axis, (k, s, d) in enumerate(sizes, first):
        reach = d * (k - 1) + 1
        if reach > x.shape[axis]:
            raise ValueError(f"a kernel that reaches over {reach} does not fit into {x.shape[axis]}; add padding")
        x = x.unfold(axis, reach, s)[..., ::d]
    return x


# One signal


def cross_correlate(x: Tensor, k: Tensor, slide: Slide = ONE_BY_ONE) -> Tensor:
    """Σ_i k(i) x(n + i): x and k with the same number of axes."""
    return (windows(x, k.shape, x.dim(), slide) * k).sum(tuple(range(-k.dim(), 0)))


def convolve(x: Tensor, k: Tensor, slide: Slide = ONE_BY_ONE) -> Tensor:
    """Σ_i k(i) x(n − i): the cross-correlation with k flipped in every axis."""
    return cross_correlate(x, k.flip(tuple(range(k.dim()))), slide)


def convolve_fully(x: Tensor, k: Tensor) -> Tensor:
    """Every n where x and k overlap at all: n + K − 1 values. This form commutes."""
    return convolve(x, k, Slide(padding=[size - 1 for size in k.shape]))


def same(k: Tensor) -> Slide:
    """The padding ⌊K/2⌋ of each axis that keeps the size, for odd K."""
    if any(size % 2 == 0 for size in k.shape):
        raise ValueError(f"a kernel of {tuple(k.shape)} has no middle; 'same' needs odd sizes")
    return Slide(padding=[size // 2 for size in k.shape])


def correlation_at(x: Tensor, k: Tensor, n: int) -> Tensor:
    """k(−⌊K/2⌋) x(n − ⌊K/2⌋) + .. + k(0) x(n) + .. at one place n of a 1-D signal, written out."""
    half = len(k) // 2
    i = torch.arange(-half, half + 1)
    inside = (n + i >= 0) & (n + i < len(x))
    return (k[half + i] * x[(n + i).clamp(0, len(x) - 1)] * inside).sum()


# The layer


def layer(x: Tensor, w: Tensor, b: Tensor | None = None, slide: Slide = ONE_BY_ONE) -> Tensor:
    """x (b, C_in, n..), w (C_out, C_in/G, K..), b (C_out) -> (b, C_out, o..): the readable form."""
    axes = w.dim() - 2
    seen, kernels = split_groups(windows(x, w.shape[2:], axes, slide), w, slide.groups)
    seen, kernels = seen.flatten(-axes), kernels.flatten(3)
    return with_bias(torch.einsum("bgc...u,gocu->bgo...", seen, kernels).flatten(1, 2), b)


def layer_by_columns(x: Tensor, w: Tensor, b: Tensor | None = None, slide: Slide = ONE_BY_ONE) -> Tensor:
    """The same by im2col: columns (b, G, C_in/G · K.., positions), kernels (G, C_out/G, C_in/G · K..)."""
    axes = w.dim() - 2
    seen, kernels = split_groups(windows(x, w.shape[2:], axes, slide), w, slide.groups)
    places = seen.shape[3 : 3 + axes]
    columns = seen.flatten(-axes).flatten(3, -2).transpose(-2, -1).flatten(2, 3)
    return with_bias((kernels.flatten(2) @ columns).flatten(1, 2).unflatten(-1, places), b)


def split_groups(seen: Tensor, w: Tensor, groups: int) -> tuple[Tensor, Tensor]:
    """The channel axis of windows (b, C_in, ..) and of kernels (C_out, ..), cut into groups."""
    channels, filters = seen.shape[1], w.shape[0]
    if channels % groups or filters % groups or channels // groups != w.shape[1]:
        raise ValueError(f"{groups} groups do not fit {channels} input channels and kernels {tuple(w.shape)}")
    return seen.unflatten(1, (groups, -1)), w.unflatten(0, (groups, -1))


def with_bias(y: Tensor, b: Tensor | None) -> Tensor:
    return y if b is None else y + b.view(-1, *(1,) * (y.dim() - 2))


def backward(x: Tensor, w: Tensor, g: Tensor, slide: Slide = ONE_BY_ONE) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of x, w and b, given that of y (b, C_out, o..).

    ∂w[o, c, u] = Σ_i g[o, i] x[c, i S + u D − P]      ∂x = Mᵀ g      ∂b[o] = Σ_i g[o, i]
    """
    axes = w.dim() - 2
    seen, _ = split_groups(windows(x, w.shape[2:], axes, slide), w, slide.groups)
    given = g.unflatten(1, (slide.groups, -1)).flatten(3)
    of_w = torch.einsum("bgcpu,bgop->gocu", seen.flatten(-axes).flatten(3, -2), given).reshape(w.shape)
    of_x = (g.flatten(1) @ matrix(w, x.shape[2:], slide)).view(x.shape)
    return of_x, of_w, g.transpose(0, 1).flatten(1).sum(1)


# The matrix


def matrix(w: Tensor, size: Sequence[int], slide: Slide = ONE_BY_ONE) -> Tensor:
    """M (C_out · o.., C_in · n..) with vec(y) = M vec(x), for images of `size` n_1 .. n_N."""
    axes, pixels = w.dim() - 2, math.prod(size)
    # Which pixel stands at each place of each window; 0 is padding, so a pixel's number is one more than its index.
    numbers = torch.arange(1, pixels + 1, device=w.device).view(*size)
    at = windows(numbers, w.shape[2:], axes, slide).flatten(-axes).flatten(0, -2)  # (places, K..)
    places, taps = at.shape
    kernels = w.flatten(2)[:, :, None].expand(-1, -1, places, taps)
    local = w.new_zeros(*w.shape[:2], places, pixels + 1)
    local = local.scatter_add(-1, at.expand(*w.shape[:2], -1, -1), kernels)[..., 1:]
    local = local.transpose(1, 2)  # (C_out, places, C_in / G, pixels)
    m = w.new_zeros(slide.groups, w.shape[0] // slide.groups, places, slide.groups, w.shape[1], pixels)
    group = torch.arange(slide.groups, device=w.device)
    m[group, :, :, group] = local.unflatten(0, (slide.groups, -1))
    return m.reshape(w.shape[0] * places, -1)


def toeplitz(k: Tensor, n: int, slide: Slide = ONE_BY_ONE) -> Tensor:
    """T[i, i S + u D − P] = k[u]: the matrix of one 1-D kernel on a signal of length n."""
    return matrix(k[None, None], (n,), slide)


def is_toeplitz(m: Tensor) -> bool:
    """Whether every diagonal is constant."""
    return bool(torch.equal(m[1:, 1:], m[:-1, :-1]))


def distinct_entries(w: Tensor, size: Sequence[int], slide: Slide = ONE_BY_ONE) -> int:
    """How many weights the matrix really has, when every weight is a number of its own: C_out · C_in/G · K.."""
    numbered = torch.arange(1.0, w.numel() + 1, dtype=torch.float64).view(w.shape)
    return len(matrix(numbered, size, slide).unique()) - 1  # without the 0


# Layouts of the filter bank


def from_kernel_first(w: Tensor) -> Tensor:
    """MF's (K_h, K_w, C_in, C_out) as torch's (C_out, C_in, K_h, K_w)."""
    return w.permute(3, 2, 0, 1)


def from_input_first(w: Tensor) -> Tensor:
    """DLD's (C_in, C_out, K, K) as torch's (C_out, C_in, K, K)."""
    return w.transpose(0, 1)
