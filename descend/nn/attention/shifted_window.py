"""Window attention for images: every position looks at its own M × M window, and windows move between blocks.

    A = softmax(Q Kᵀ / √d_k + B),   O = A V          inside each window (W-MSA)
    B_ij = β[y_i − y_j + M − 1, x_i − x_j + M − 1]   a number for each offset and head, (2M − 1)² of them
    SW-MSA: the windows lie s = ⌊M/2⌋ further down and to the right, so that neighbours of the last block's borders meet

Shifted windows are had by moving the map instead: roll it up and to the left by s, cut it into the same windows, and
let no position see one that the roll brought in from the other side. Two positions see each other exactly if

    ⌊(y_i − s) / M⌋ = ⌊(y_j − s) / M⌋   and the same for x                    `sees` is this mask over the whole map

Bias and shift are those of the original (MF names them without a formula). A map that is not a multiple of M is padded
with zeros below and to the right; those positions take part as keys, as in the released models. A map smaller than M
is one window of its shorter side, without a shift. A window that is the whole map is global attention.

On a CPU compiled code reads and writes the rows where they lie (`descend.native.windows`): no copy is made of the map.
Cost: `descend.theory.window_cost`. `descend.nn.attention.sliding_window` has the windows of texts.

Systems: window-attention
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from descend.native import training, windows
from descend.nn.attention.multi_head import attend


def cut_windows(x: Tensor, size: int) -> Tensor:
    """The windows of a map: (b, h, w, ..) -> (b · n, size², ..), row by row; h and w are multiples of size."""
    x = x.unflatten(2, (-1, size)).unflatten(1, (-1, size)).transpose(2, 3)
    return x.reshape(-1, size * size, *x.shape[5:])


def join_windows(x: Tensor, size: int, height: int, width: int) -> Tensor:
    """The map of its windows: (b · n, size², ..) -> (b, height, width, ..)."""
    x = x.unflatten(0, (-1, height // size, width // size)).unflatten(3, (size, size)).transpose(2, 3)
    return x.reshape(-1, height, width, *x.shape[5:])


def offset_index(size: int, window: int, device: torch.device | None = None) -> Tensor:
    """Where β has the offset of each pair in a window of size ≤ window: (size², size²) of 0 .. (2·window − 1)² − 1."""
    line = torch.arange(size, device=device)
    apart = line[:, None] - line + window - 1
    index = apart[:, None, :, None] * (2 * window - 1) + apart[None, :, None, :]
    return index.reshape(size * size, size * size)


def strip(n: int, size: int, shift: int, device: torch.device | None = None) -> Tensor:
    """⌊(y − s) / M⌋ of n rows: which shifted window each lies in."""
    return (torch.arange(n, device=device) - shift).div(size, rounding_mode="floor")


def regions(height: int, width: int, size: int, shift: int, device: torch.device | None = None) -> Tensor:
    """A number for each position (height, width): equal for two of them exactly if they share a shifted window."""
    return strip(height, size, shift, device)[:, None] * (width // size + 2) + strip(width, size, shift, device)


def sees(height: int, width: int, size: int, shift: int) -> Tensor:
    """The mask of window attention over a whole map: (h·w, h·w), true where query and key share a window."""
    region = regions(height, width, size, shift).flatten()
    return region[:, None] == region


def shifted_mask(height: int, width: int, size: int, shift: int, device: torch.device | None = None) -> Tensor:
    """The same for the windows of the rolled map: (n, size², size²)."""
    region = cut_windows(regions(height, width, size, shift, device)[None].roll((-shift, -shift), (1, 2)), size)
    return region[:, :, None] == region[:, None, :]


class ImageWindowAttention(nn.Module):
    """Attention inside windows of a map: x (b, h, w, d) -> (b, h, w, d); shift 0 is W-MSA, window // 2 is SW-MSA."""

    def __init__(self, width: int, heads: int, window: int, shift: int = 0, dropout: float = 0.0):
        super().__init__()
        if width % heads:
            raise ValueError(f"width {width} is not a multiple of heads {heads}")
        if not 0 <= shift < window:
            raise ValueError(f"a shift of {shift} for windows of {window}: it is at least 0 and less than the window")
        self.heads, self.window, self.shift, self.dropout = heads, window, shift, dropout
        self.q, self.k, self.v, self.out = (nn.Linear(width, width) for _ in range(4))
        self.offsets = nn.Parameter(torch.zeros((2 * window - 1) ** 2, heads))
        nn.init.trunc_normal_(self.offsets, std=0.02)

    def forward(self, x: Tensor) -> Tensor:
        height, width = x.shape[1:3]
        small = min(height, width) <= self.window
        size, shift = (min(height, width), 0) if small else (self.window, self.shift)
        below, right = -height % size, -width % size
        if below or right:
            x = F.pad(x, (0, 0, 0, right, 0, below))
        parts = self.q, self.k, self.v
        weight, bias = (torch.cat([getattr(part, name) for part in parts]) for name in ("weight", "bias"))
        qkv = F.linear(x, weight, bias).unflatten(-1, (3, self.heads, -1))  # one product for the three
        y = self.mix(qkv, size, shift)
        if below or right:
            y = y[:, :height, :width]
        return self.out(y.flatten(-2))

    def mix(self, qkv: Tensor, size: int, shift: int) -> Tensor:
        """(b, h, w, 3, heads, k), whole windows -> (b, h, w, heads, k)."""
        if not self.rate and training.usable(qkv):
            return windows.attention(qkv, self.bias(size), size, shift)
        height, width = qkv.shape[1:3]
        q, k, v = cut_windows(qkv.roll((-shift, -shift), (1, 2)) if shift else qkv, size).unbind(2)
        y = attend(q, k, v, mask=self.bias_and_mask(height, width, size, shift, len(q)), dropout=self.rate)
        y = join_windows(y, size, height, width)
        return y.roll((shift, shift), (1, 2)) if shift else y

    def bias(self, size: int) -> Tensor:
        """B (heads, size², size²)"""
        index = offset_index(size, self.window, self.offsets.device)
        return self.offsets[index.flatten()].unflatten(0, index.shape).permute(2, 0, 1)

    def bias_and_mask(self, height: int, width: int, size: int, shift: int, windows: int) -> Tensor:
        """B, and −inf for pairs that the roll brought together: (windows or 1, heads, size², size²)."""
        bias = self.bias(size)[None]
        if not shift:
            return bias
        apart = ~shifted_mask(height, width, size, shift, bias.device)[:, None]
        return bias.masked_fill(apart, -torch.inf).repeat(windows // len(apart), 1, 1, 1)

    @property
    def rate(self) -> float:
        """The dropout of the weights now: none outside training."""
        return self.dropout if self.training else 0.0
