"""Smaller and larger maps: down-sampling, unpooling, interpolation, transposed convolution.

    average unpooling   every value copied into its s×s block           average pooling gives x back: A_pool(U(x)) = x
    max unpooling       the value in one cell of the block, 0 elsewhere: the first cell (top left), or the remembered
                        cell, where the maximum was when the map was pooled       max pooling gives x back if x ≥ 0
    bilinear            separable: U x Uᵀ, row i of U has the weights 1 − t and t of the two nearest old pixel centres
    pixel shuffle       s² channels become the s×s pixels of one block

    transposed          y[o, i S + u D − P] += w[c, o, u] x[c, i]       every input pixel writes a weighted patch;
    convolution         overlaps are summed. Its matrix is Mᵀ of the convolution with the same w, S, P, D, so
                        ⟨conv(x), y⟩ = ⟨x, convT(y)⟩. It is the adjoint, not the inverse ("deconvolution").
                        side (n − 1) S + D (K − 1) + 1 − 2P
    averaged            the sum divided by how many patches reach the pixel: without it, overlaps make a chequerboard

Erratum: DLN says that max pooling regenerates the input of max unpooling; for a negative value the zeros beside it win,
and 0 comes back. True for non-negative maps, as after a ReLU. Bilinear interpolation and pixel shuffling are named by
no formula in the books (DLD 4.6); the form here is torch's with align_corners=False.

Systems: resampling-and-unpooling, transposed-convolution
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from descend.ops.images.convolution import ONE_BY_ONE, Size, Slide, each, matrix, windows, with_bias

# Down


def subsample(x: Tensor, factor: int) -> Tensor:
    """Every factor-th pixel of (b, c, h, w): what a stride leaves."""
    return x[..., ::factor, ::factor]


def max_pool_with_switches(x: Tensor, window: int) -> tuple[Tensor, Tensor]:
    """The maxima of the blocks (b, c, h/s, w/s), and the cell 0 .. s² − 1 of each block where it stood."""
    blocks = windows(x, window, 2, Slide(window)).flatten(-2)
    values, cells = blocks.max(-1)
    return values, cells


# Up


def average_unpool(x: Tensor, factor: int) -> Tensor:
    """Every value copied into its factor × factor block: nearest-neighbour up-sampling."""
    return x.repeat_interleave(factor, -2).repeat_interleave(factor, -1)


def max_unpool_first(x: Tensor, factor: int) -> Tensor:
    """The value in the top-left cell of its block, zeros elsewhere."""
    return max_unpool(x, torch.zeros_like(x, dtype=torch.long), factor)


def max_unpool(x: Tensor, cells: Tensor, factor: int) -> Tensor:
    """The value in the remembered cell of its block (see `max_pool_with_switches`), zeros elsewhere."""
    if int(cells.max()) >= factor**2 or int(cells.min()) < 0:
        raise ValueError(f"a block of {factor}×{factor} has the cells 0..{factor**2 - 1}, not {int(cells.max())}")
    blocks = x.new_zeros(*x.shape, factor**2).scatter(-1, cells[..., None], x[..., None])
    return from_blocks(blocks.unflatten(-1, (factor, factor)))


def from_blocks(blocks: Tensor) -> Tensor:
    """(.., h, w, s, s) -> (.., h s, w s): each s×s block at its place."""
    return blocks.transpose(-3, -2).flatten(-2).flatten(-3, -2)


def pixel_shuffle(x: Tensor, factor: int) -> Tensor:
    """(b, c s², h, w) -> (b, c, h s, w s): channel c s² + i s + j becomes pixel (i, j) of the blocks of channel c."""
    return from_blocks(x.unflatten(1, (-1, factor, factor)).movedim((2, 3), (-2, -1)))


def interpolation(n: int, factor: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """U (n · factor, n): row i weighs the two old pixel centres beside the new centre (i + ½)/factor − ½."""
    at = ((torch.arange(n * factor, dtype=torch.float64) + 0.5) / factor - 0.5).clamp(0, n - 1)
    return (1 - (at[:, None] - torch.arange(n, dtype=torch.float64)).abs()).clamp_min(0).to(dtype)


def bilinear(x: Tensor, factor: int) -> Tensor:
    """U_h x U_wᵀ: (.., h, w) -> (.., h factor, w factor); the border is copied."""
    rows, columns = (interpolation(n, factor, x.dtype).to(x.device) for n in x.shape[-2:])
    return rows @ x @ columns.mT


def bilinear_kernel(factor: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """The kernel (K, K), K = 2 s − s mod 2, with which a transposed convolution of stride s interpolates.

    Inside the map it equals `bilinear` when the padding is ⌊s/2⌋ (s even).
    """
    size = 2 * factor - factor % 2
    middle = (size - 1) / 2
    line = 1 - (torch.arange(size, dtype=torch.float64) - middle).abs() / factor
    return (line[:, None] * line).to(dtype)


# Transposed convolution


def transposed_convolution(x: Tensor, w: Tensor, b: Tensor | None = None, slide: Slide = ONE_BY_ONE) -> Tensor:
    """x (b, C_in, n..), w (C_in, C_out/G, K..) -> (b, C_out, n'..): each pixel writes its patch, overlaps summed."""
    size = transposed_size(x.shape[2:], w.shape[2:], slide)
    y = x.flatten(1) @ matrix(w, size, slide)  # M of the convolution that maps y's size to x's
    return with_bias(y.view(x.shape[0], -1, *size), b)


def averaged_transposed_convolution(x: Tensor, w: Tensor, b: Tensor | None = None, slide: Slide = ONE_BY_ONE) -> Tensor:
    """As `transposed_convolution`, with the mean of the patches that overlap instead of their sum."""
    return with_bias(transposed_convolution(x, w, None, slide) / overlaps(x.shape[2:], w.shape[2:], slide, x.dtype), b)


def overlaps(
    size: Sequence[int], kernel: Size, slide: Slide = ONE_BY_ONE, dtype: torch.dtype = torch.float32
) -> Tensor:
    """How many patches reach each output pixel, at least 1 (a pixel that none reaches is 0 either way)."""
    axes = len(size)
    one = slide._replace(groups=1)
    taps = torch.ones(1, 1, *each(kernel, axes), dtype=dtype)
    return transposed_convolution(torch.ones(1, 1, *size, dtype=dtype), taps, None, one)[0, 0].clamp_min(1)


def transposed_size(size: Sequence[int], kernel: Size, slide: Slide = ONE_BY_ONE) -> tuple[int, ...]:
    """(n − 1) S + D (K − 1) + 1 − 2P for each axis."""
    axes = len(size)
    parts = (each(value, axes) for value in (kernel, slide.stride, slide.padding, slide.dilation))
    return tuple((n - 1) * s + d * (k - 1) + 1 - 2 * p for n, k, s, p, d in zip(size, *parts, strict=True))
