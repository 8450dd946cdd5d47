"""RandAugment: N operations, each drawn from fourteen, all of the same strength M.

    x' = o_N(.. o_1(x, m) .., m)       o_i uniform among OPERATIONS,  m = M / 10

    identity · autocontrast · equalize                       no strength
    rotate ±30° m · shear ±0.3 m · translate ±0.45 m side    black comes in; bilinear, about the centre
    solarize    v -> 1 − v above 1 − m                       posterize    keeps 8 − ⌊4 m⌋ bits
    color, contrast, brightness, sharpness                   d + (1 ± 0.9 m)(x − d), d grey, mean grey, black, smoothed

The list is that of Cubuk et al. (2020); signs are drawn, the strength is not. The operations are Pillow's (ImageOps,
ImageEnhance) on tensors, without its rounding to 8 bits where there is no need. Each image's numbers come with the
batch: two for an operation, which one and its sign.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor
from torch.nn.functional import affine_grid, conv2d, grid_sample

from descend.errors import Mistake
from descend.ranges import Range

LUMA = (0.299, 0.587, 0.114)
Operation = Callable[[Tensor, Tensor], Tensor]
"""Images (b, c, h, w) in 0..1 and signed strengths m (b) -> images."""


def grey(x: Tensor) -> Tensor:
    """Brightness (b, 1, h, w): weighted as the eye does, or the mean where there are not three channels."""
    return (x * x.new_tensor(LUMA)[:, None, None]).sum(1, keepdim=True) if x.shape[1] == 3 else x.mean(1, keepdim=True)


def blend(x: Tensor, d: Tensor, factor: Tensor) -> Tensor:
    """d + factor (x − d), clamped to 0..1: factor 0 is d, 1 is x."""
    return (d + factor[:, None, None, None] * (x - d)).clamp(0, 1)


def autocontrast(x: Tensor) -> Tensor:
    """Every channel stretched to 0..1; one that never changes stays."""
    low, high = x.amin((2, 3), keepdim=True), x.amax((2, 3), keepdim=True)
    return torch.where(high > low, (x - low) / (high - low).clamp(min=1e-12), x)


def equalize(x: Tensor) -> Tensor:
    """Every channel's 256 levels made equally frequent, in whole numbers as Pillow does."""
    levels = (x * 255).round().long().flatten(2).flatten(0, 1)  # (b·c, h·w)
    counts = torch.zeros(len(levels), 256, dtype=torch.long).scatter_add_(1, levels, torch.ones_like(levels))
    last = counts.gather(1, levels.amax(1, keepdim=True))
    step = (levels.shape[1] - last) // 255
    before = counts.cumsum(1) - counts
    table = ((step // 2 + before) // step.clamp(min=1)).clamp(max=255)
    table = torch.where(step > 0, table, torch.arange(256))  # too few pixels to spread: as they were
    return (table.gather(1, levels).to(x.dtype) / 255).view_as(x)


def solarize(x: Tensor, threshold: Tensor) -> Tensor:
    """Values at or above the threshold (b) turned round."""
    return torch.where(x < threshold[:, None, None, None], x, 1 - x)


def posterize(x: Tensor, bits: Tensor) -> Tensor:
    """Only the first `bits` (b) of 8 bits."""
    step = 2 ** (8 - bits.long())[:, None, None, None]
    return ((x * 255).round().long() // step * step).to(x.dtype) / 255


def contrast(x: Tensor, factor: Tensor) -> Tensor:
    """Away from the image's mean grey."""
    return blend(x, grey(x).mean((2, 3), keepdim=True).expand_as(x), factor)


def smooth(x: Tensor) -> Tensor:
    """A 3 × 3 mean whose centre counts five times; the border stays."""
    kernel = torch.ones(x.shape[1], 1, 3, 3, dtype=x.dtype)
    kernel[:, :, 1, 1] = 5
    result = x.clone()
    if min(x.shape[2:]) > 2:
        result[..., 1:-1, 1:-1] = conv2d(x, kernel / 13, groups=x.shape[1])
    return result


def resample(x: Tensor, matrix: Tensor, shift: Tensor) -> Tensor:
    """x'(p) = x(A p + t), p in pixels from the centre, A (b, 2, 2), t (b, 2); black outside."""
    h, w = x.shape[-2:]
    half = x.new_tensor([w / 2, h / 2])
    theta = torch.cat([matrix * half / half[:, None], (shift / half)[:, :, None]], 2)
    return grid_sample(x, affine_grid(theta.to(x.dtype), list(x.shape), align_corners=False), align_corners=False)


def linear(x: Tensor, a: Tensor, b: Tensor, c: Tensor, d: Tensor) -> Tensor:
    """x'(p) = x(A p), A = [[a, b], [c, d]] of each image."""
    matrix = torch.stack([torch.stack([a, b], 1), torch.stack([c, d], 1)], 1)
    return resample(x, matrix, x.new_zeros(len(x), 2))


def rotate(x: Tensor, degrees: Tensor) -> Tensor:
    """Counter-clockwise, about the centre."""
    cos, sin = (degrees * math.pi / 180).cos(), (degrees * math.pi / 180).sin()
    return linear(x, cos, -sin, sin, cos)


def shear(x: Tensor, across: Tensor, down: Tensor) -> Tensor:
    """Rows moved in proportion to their height, columns to their place."""
    one = torch.ones_like(across)
    return linear(x, one, across, down, one)


def translate(x: Tensor, across: Tensor, down: Tensor) -> Tensor:
    """By shares of the width and of the height."""
    h, w = x.shape[-2:]
    return resample(x, torch.eye(2, dtype=x.dtype).expand(len(x), 2, 2), torch.stack([across * w, down * h], 1))


OPERATIONS: dict[str, Operation] = {
    "identity": lambda x, m: x,
    "autocontrast": lambda x, m: autocontrast(x),
    "equalize": lambda x, m: equalize(x),
    "rotate": lambda x, m: rotate(x, 30 * m),
    "solarize": lambda x, m: solarize(x, 1 - m.abs()),
    "color": lambda x, m: blend(x, grey(x).expand_as(x), 1 + 0.9 * m),
    "posterize": lambda x, m: posterize(x, 8 - (4 * m.abs()).floor()),
    "contrast": lambda x, m: contrast(x, 1 + 0.9 * m),
    "brightness": lambda x, m: blend(x, torch.zeros_like(x), 1 + 0.9 * m),
    "sharpness": lambda x, m: blend(x, smooth(x), 1 + 0.9 * m),
    "shear-x": lambda x, m: shear(x, 0.3 * m, torch.zeros_like(m)),
    "shear-y": lambda x, m: shear(x, torch.zeros_like(m), 0.3 * m),
    "translate-x": lambda x, m: translate(x, 0.45 * m, torch.zeros_like(m)),
    "translate-y": lambda x, m: translate(x, torch.zeros_like(m), 0.45 * m),
}


@dataclass(frozen=True)
class RandAugment:
    """`count` operations on each image, of strength `magnitude` (0..10)."""

    count: Annotated[int, Range(int, least=0, most=14)] = 2
    magnitude: Annotated[float, Range(float, least=0, most=10)] = 9.0

    def __post_init__(self) -> None:
        if self.count < 0 or not 0 <= self.magnitude <= 10:
            raise Mistake(f"RandAugment of {self.count} operations of strength {self.magnitude}: at least 0, and 0..10")

    @property
    def chance(self) -> int:
        return 2 * self.count

    def __call__(self, x: Tensor, u: Tensor) -> Tensor:
        for i in range(self.count):
            number = ((u[:, 2 * i] + 1) / 2 * len(OPERATIONS)).long().clamp(max=len(OPERATIONS) - 1)
            m = torch.where(u[:, 2 * i + 1] < 0, -1.0, 1.0).to(x.dtype) * self.magnitude / 10
            x = apply_operations(x, number, m)
        return x


def apply_operations(x: Tensor, number: Tensor, m: Tensor) -> Tensor:
    """Operation `number` (b) of OPERATIONS with strength m (b) on each image; those with the same one together."""
    result = x.clone()
    for k, operation in enumerate(OPERATIONS.values()):
        rows = (number == k).nonzero().flatten()
        if len(rows):
            result[rows] = operation(x[rows], m[rows])
    return result
