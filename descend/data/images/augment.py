"""Augmentation: random changes of images that leave the label true, for a whole batch at once.

    x' = f_k(.. f_1(x, u_1) .., u_k)        u_i uniform in −1..1, `chance` of them for each image and transform

Every transform is a function of images (b, c, h, w) in 0..1 and of its random numbers, so a stream that brings u with
every example (`Shuffled(..., chance=augment.chance)`, then `Warped(stream, augment)`) is seeded, can be resumed, and
does not depend on how an epoch is cut into batches. Shapes stay, the label is not touched.

    Shift      whole pixels, black comes in (pad and crop)      Crop      a part, brought back to full size
    Mirror     left and right change places, one time in two    Upend     top and bottom
    Turn       about the centre                                 Zoom      the size
    Colour     brightness, contrast, saturation                 ColourBalance   the strength of each channel
    Hue        all colours, turned about grey                   Erase     a black rectangle

What is safe depends on the data: a 6 upside down is a 9 (DLN). `safe` leaves out what `UNSAFE` names for a dataset.
Noise on images is `nn.noise.GaussianNoise`.

Systems: data-augmentation
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Protocol

import torch
from torch import Tensor
from torch.nn.functional import affine_grid, grid_sample

from descend.data.images.warp import Warp
from descend.data.streams.arrays import generator
from descend.errors import Mistake, nearest
from descend.ranges import Fraction, PositiveShare, Range, Share, SideOrAny


class Transform(Protocol):
    """Images x (b, c, h, w) and u (b, chance) in −1..1 -> images of the same shape."""

    @property
    def chance(self) -> int: ...

    def __call__(self, x: Tensor, u: Tensor) -> Tensor: ...


@dataclass(frozen=True)
class Shift:
    """x'(i, j) = x(i + a, j + b), a and b whole numbers in −pixels..pixels, all equally likely."""

    pixels: SideOrAny
    chance = 2

    def __call__(self, x: Tensor, u: Tensor) -> Tensor:
        b, c, h, w = x.shape
        n = 2 * self.pixels + 1
        by = ((u + 1) / 2 * n).long().clamp(max=n - 1) - self.pixels
        i, j = torch.arange(h) + by[:, :1], torch.arange(w) + by[:, 1:]  # (b, h) and (b, w)
        inside = ((i >= 0) & (i < h))[:, :, None] & ((j >= 0) & (j < w))[:, None, :]
        flat = i.clamp(0, h - 1)[:, :, None] * w + j.clamp(0, w - 1)[:, None, :]
        moved = x.flatten(2).gather(2, flat.view(b, 1, h * w).expand(b, c, h * w)).view_as(x)
        return moved * inside[:, None]


@dataclass(frozen=True)
class Crop:
    """A window whose sides are a share `least`..1 of the image's, anywhere in it, brought back to full size."""

    least: PositiveShare
    chance = 3

    def __call__(self, x: Tensor, u: Tensor) -> Tensor:
        s = 1 - (1 - self.least) * (u[:, 0] + 1) / 2
        at = (1 - s)[:, None] * u[:, 1:]
        zero = torch.zeros_like(s)
        rows = torch.stack([s, zero, at[:, 0]], 1), torch.stack([zero, s, at[:, 1]], 1)
        grid = affine_grid(torch.stack(rows, 1), list(x.shape), align_corners=False)
        return grid_sample(x, grid, padding_mode="border", align_corners=False)


@dataclass(frozen=True)
class Mirror:
    """x'(i, j) = x(i, w − 1 − j) where u < 2 share − 1: a share of the images."""

    share: Share = 0.5
    chance = 1

    def __call__(self, x: Tensor, u: Tensor) -> Tensor:
        return torch.where(u[:, :, None, None] < 2 * self.share - 1, x.flip(-1), x)


@dataclass(frozen=True)
class Upend:
    """x'(i, j) = x(h − 1 − i, j) where u < 0."""

    chance = 1

    def __call__(self, x: Tensor, u: Tensor) -> Tensor:
        return torch.where(u[:, :, None, None] < 0, x.flip(-2), x)


@dataclass(frozen=True)
class Turn:
    """By an angle in −degrees..degrees."""

    degrees: Annotated[float, Range(float, least=0, most=180)]
    chance = 1

    def __call__(self, x: Tensor, u: Tensor) -> Tensor:
        zero = torch.zeros_like(u)
        return Warp(turn=self.degrees)(x, torch.cat([zero, zero, u, zero], 1))


@dataclass(frozen=True)
class Zoom:
    """The size times e^s, s in −log_size..log_size."""

    log_size: Annotated[float, Range(float, least=0, most=3)]
    chance = 1

    def __call__(self, x: Tensor, u: Tensor) -> Tensor:
        zero = torch.zeros_like(u)
        return Warp(zoom=self.log_size)(x, torch.cat([zero, zero, zero, u], 1))


@dataclass(frozen=True)
class Colour:
    """x·(1 + β), then away from the image's mean by 1 + κ, then away from grey by 1 + s; clamped to 0..1."""

    brightness: Share = 0.0
    contrast: Share = 0.0
    saturation: Share = 0.0
    chance = 3

    def __call__(self, x: Tensor, u: Tensor) -> Tensor:
        limits = torch.tensor([self.brightness, self.contrast, self.saturation], dtype=x.dtype)
        beta, kappa, s = (1 + limits * u.to(x.dtype)).T[:, :, None, None, None]
        x = x * beta
        mean = x.mean((1, 2, 3), keepdim=True)
        x = mean + kappa * (x - mean)
        grey = x.mean(1, keepdim=True)
        return (grey + s * (x - grey)).clamp(0, 1)


@dataclass(frozen=True)
class ColourBalance:
    """Channel c times 1 + limit·u_c, for images of up to 3 channels; clamped to 0..1."""

    limit: Share
    chance = 3

    def __call__(self, x: Tensor, u: Tensor) -> Tensor:
        return (x * (1 + self.limit * u[:, : x.shape[1], None, None])).clamp(0, 1)


@dataclass(frozen=True)
class Hue:
    """m + cos θ (x − m) + sin θ k × x,  m the mean of the channels, k = (1, 1, 1)/√3,  |θ| ≤ 2π limit; clamped to 0..1.

    A pixel's colour is turned about the axis of greys, so that its brightness m and its distance from grey stay. Only
    images of three channels have a hue; others stay as they are.
    """

    limit: Annotated[float, Range(float, least=0, most=0.5)]
    chance = 1

    def __call__(self, x: Tensor, u: Tensor) -> Tensor:
        if x.shape[1] != 3:
            return x
        theta = (2 * math.pi * self.limit * u.to(x.dtype))[:, :, None, None]
        mean = x.mean(1, keepdim=True)
        across = (x.roll(1, 1) - x.roll(-1, 1)) / math.sqrt(3)
        return (mean + theta.cos() * (x - mean) + theta.sin() * across).clamp(0, 1)


@dataclass(frozen=True)
class Erase:
    """A rectangle of about this share of the area goes black; its centre is anywhere, its outside part is cut off."""

    share: Fraction
    chance = 2

    def __call__(self, x: Tensor, u: Tensor) -> Tensor:
        side = self.share**0.5
        return x * ~rectangles(x.shape[-2], x.shape[-1], torch.full((len(x),), side), u)[:, None]


def rectangles(h: int, w: int, side: Tensor, centre: Tensor) -> Tensor:
    """Masks (b, h, w), True in a rectangle of sides h·side and w·side about `centre` (b, 2; −1..1 is the image)."""
    size = torch.tensor([h, w], device=side.device)
    extent = (side[:, None] * size).round()
    first = ((centre + 1) / 2 * size - extent / 2).round()
    i, j = torch.arange(h, device=side.device), torch.arange(w, device=side.device)
    rows = (i >= first[:, :1]) & (i < first[:, :1] + extent[:, :1])
    columns = (j >= first[:, 1:]) & (j < first[:, 1:] + extent[:, 1:])
    return rows[:, :, None] & columns[:, None, :]


@dataclass(frozen=True)
class Augment:
    """Transforms one after the other; itself a transform."""

    transforms: tuple[Transform, ...]

    @property
    def chance(self) -> int:
        return sum(t.chance for t in self.transforms)

    def __call__(self, x: Tensor, u: Tensor) -> Tensor:
        for transform, part in zip(self.transforms, u.split([t.chance for t in self.transforms], 1), strict=True):
            x = transform(x, part)
        return x

    def augment_seeded(self, x: Tensor, seed: int) -> Tensor:
        """With u drawn from a seed: for a batch that no stream brings."""
        return self(x, 2 * torch.rand(len(x), self.chance, generator=generator(seed)) - 1)


def changes_digits(transform: Transform) -> bool:
    """Mirrored or upended digits are other digits or none; turned by more than 45° a 6 comes nearer to a 9."""
    return isinstance(transform, Mirror | Upend) or (isinstance(transform, Turn) and transform.degrees > 45)


def changes_photographs(transform: Transform) -> bool:
    """The world is not seen upside down."""
    return isinstance(transform, Upend) or (isinstance(transform, Turn) and transform.degrees > 45)


UNSAFE: dict[str, Callable[[Transform], bool]] = {
    "digits": changes_digits,
    "letters": changes_digits,
    "photographs": changes_photographs,
    "satellite": lambda transform: False,
}


def safe(transforms: Sequence[Transform], dataset: str) -> Augment:
    """The transforms that keep the labels of this dataset true, in their order."""
    if dataset not in UNSAFE:
        raise Mistake(f"no dataset {dataset!r}.{nearest(dataset, UNSAFE)} Known: {', '.join(UNSAFE)}")
    return Augment(tuple(t for t in transforms if not UNSAFE[dataset](t)))
