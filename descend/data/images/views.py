"""Two views of every image: augmented twice, so that what they share is what the image shows.

    x1 = standardize(augment(x, u_1)),  x2 = standardize(augment(x, u_2))        u_1, u_2 belong to seed, epoch and row

They do not depend on how an epoch is cut into batches, on the number of processes, or on where a run was resumed. With
a jigsaw the second view is the pieces of the image in another order, and with `noise` every image brings N numbers in
0..1, which choose what it is compared with.

Which changes are allowed decides what is learned: what changes between the views is forgotten. Colours that are changed
and balanced anew leave the shape, and so do outlines; crops and shifts leave out the place. What is left and easier to
see than what is wanted is learned instead: black corners of a turned image tell how far an object is from the middle.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import torch
from torch import Tensor
from torch.nn.functional import interpolate, pad

from descend.data.images.augment import Augment, Colour, ColourBalance, Crop, Hue, Mirror, Transform
from descend.data.images.labelled import Images, Preprocessing
from descend.data.images.randaugment import grey
from descend.data.images.stream import Ahead, Load
from descend.data.images.warp import Warp
from descend.data.streams.arrays import Shuffled
from descend.data.text.masking import uniform
from descend.ops.images.jigsaw import cut, permutations, reorder
from descend.ranges import PositiveShare, Range, Share

Batch = dict[str, Tensor]


@dataclass(frozen=True)
class Greyed:
    """The colours go out of a share of the images; images of one channel stay."""

    share: Share
    chance = 1

    def __call__(self, x: Tensor, u: Tensor) -> Tensor:
        return torch.where(u[:, :, None, None] < 2 * self.share - 1, grey(x).expand_as(x), x)


@dataclass(frozen=True)
class Inverted:
    """A share of the images turned to their negative: 1 − x."""

    share: Share
    chance = 1

    def __call__(self, x: Tensor, u: Tensor) -> Tensor:
        return torch.where(u[:, :, None, None] < 2 * self.share - 1, 1 - x, x)


@dataclass(frozen=True)
class Outlined:
    """A share of the images becomes the strength of their edges: √(Σ_c (∂x_c/∂i)² + (∂x_c/∂j)²), the strongest 1.

    Differences are of the two neighbours, in every channel. Colour, brightness and contrast are gone, outlines stay;
    Sobel filters in front of DeepCluster (2018) do the same.
    """

    share: Share
    chance = 1

    def __call__(self, x: Tensor, u: Tensor) -> Tensor:
        near = pad(x, (1, 1, 1, 1), mode="replicate")
        across = near[:, :, 1:-1, 2:] - near[:, :, 1:-1, :-2]
        down = near[:, :, 2:, 1:-1] - near[:, :, :-2, 1:-1]
        edges = (across.square() + down.square()).sum(1, keepdim=True).sqrt()
        edges = edges / edges.amax((2, 3), keepdim=True).clamp(min=1e-6)
        return torch.where(u[:, :, None, None] < 2 * self.share - 1, edges.expand_as(x), x)


@dataclass(frozen=True)
class Shaded:
    """Uneven light: x + strength · a smooth field of 4 × 4 random numbers, the same in every channel; clamped."""

    strength: Share
    chance = 16

    def __call__(self, x: Tensor, u: Tensor) -> Tensor:
        field = interpolate(u.view(-1, 1, 4, 4), size=x.shape[-2:], mode="bilinear", align_corners=False)
        return (x + self.strength * field).clamp(0, 1)


@dataclass(frozen=True)
class Viewing:
    """How the views of an image differ. All 0 (and crop 1): not at all."""

    crop: PositiveShare = 0.6
    """Smallest side of the crop, as a share of the image's; 1: no crop."""
    flip: Share = 0.5
    """Probability of a horizontal flip."""
    turn: Annotated[float, Range(float, least=0, most=180)] = 0.0
    """Largest rotation, in degrees."""
    shift: Share = 0.0
    """Largest shift, as a share of the image's side."""
    zoom: Annotated[float, Range(float, least=0, most=3)] = 0.0
    """Largest change of the logarithm of the size."""
    colour: Share = 0.4
    """Largest change of brightness, contrast and saturation, as a share."""
    balance: Share = 0.0
    """Largest change of each channel's strength, as a share."""
    grey: Share = 0.2
    """Probability that the colours go."""
    negative: Share = 0.0
    """Probability that light and dark change places."""
    light: Share = 0.0
    """Strength of a smooth, uneven light that is added to the pixels."""
    hue: Annotated[float, Range(float, least=0, most=0.5)] = 0.0
    """Largest turn of the colours, as a share of the full circle; 0.5: any colour becomes any other."""
    outline: Share = 0.0
    """Probability that only the strength of the edges is left, of whatever colour and contrast they were."""
    outside: Literal["zeros", "reflection"] = "zeros"
    """What turns, shifts and zooms bring in: black, or a mirror image. Black corners tell where an object was."""

    def augment(self) -> Augment:
        """The transforms, without those that do nothing."""
        warp = Warp(self.shift, self.turn, self.zoom, self.outside)
        transforms: list[tuple[bool, Transform]] = [
            (self.crop < 1, Crop(self.crop)),
            (self.flip > 0, Mirror(self.flip)),
            (not warp.idle, warp),
            (self.hue > 0, Hue(self.hue)),
            (self.colour > 0, Colour(self.colour, self.colour, self.colour)),
            (self.balance > 0, ColourBalance(self.balance)),
            (self.grey > 0, Greyed(self.grey)),
            (self.negative > 0, Inverted(self.negative)),
            (self.outline > 0, Outlined(self.outline)),
            (self.light > 0, Shaded(self.light)),
        ]
        return Augment(tuple(transform for used, transform in transforms if used))


@dataclass(frozen=True)
class DrawnLoad(Load):
    """{"row", "u", ..} -> a batch, with `chance` random numbers u for every image."""

    @property
    def chance(self) -> int:
        """Random numbers of an image."""
        return self.augment.chance


@dataclass(frozen=True)
class LoadViews(DrawnLoad):
    """{"row", "u", ..} -> {"x1", "x2", "row", ..}; `grid` > 0: {"x1", "pieces", "noise", "row", ..}."""

    grid: int = 0
    noise: int = 0

    @property
    def chance(self) -> int:
        """Random numbers of an image."""
        one = self.augment.chance
        return 2 * one + (self.grid**2 + self.noise if self.grid else 0)

    def __call__(self, batch: Batch) -> Batch:
        batch, one = dict(batch), self.augment.chance
        x, u = self.pixels[batch["row"]], batch.pop("u", torch.zeros(len(batch["row"]), 0))
        first, second = (self.prepare.standardize(self.augment(x, u[:, i * one : (i + 1) * one])) for i in (0, 1))
        if not self.grid:
            return {"x1": first, "x2": second, **batch}
        order, noise = u[:, 2 * one :].split([self.grid**2, self.noise], dim=1)
        pieces = reorder(cut(second, self.grid), permutations(order))
        return {"x1": first, "pieces": pieces, "noise": (noise + 1) / 2, **batch}


def shuffle_loaded(
    images: Images, load: DrawnLoad, batch: int, seed: int, where: tuple[int, int], workers: int = 0
) -> Ahead:
    """Training batches: every image once per epoch, with fresh numbers; `row` is its place among the images."""
    rows = {"row": torch.arange(len(images.y)), "y": images.y, "ids": images.ids}
    return Ahead(Shuffled(rows, batch, seed, *where, chance=load.chance), load, workers)


def views_once(batches: Iterable[Batch], load: DrawnLoad, seed: int = 0) -> list[Batch]:
    """Batches with "row", in views drawn once and for all: for validation."""
    found = []
    for batch in batches:
        u = 2 * uniform(seed, batch["row"], load.chance) - 1 if load.chance else torch.zeros(len(batch["row"]), 0)
        found.append(load({**batch, "u": u.float()}))
    return found


def labelled_batches(
    known: Images,
    held_out: Images,
    prepare: Preprocessing,
    load: DrawnLoad,
    names: tuple[str, ...],
    limit: int,
    size: int = 256,
) -> list[Batch]:
    """Images to judge a representation by: the held-out ones, with what `load` gives under these names, drawn once and
    for all, then at most `limit` labelled ones to fit a probe to."""
    rows = torch.linspace(0, len(known.y) - 1, min(limit, len(known.y))).long()
    found: list[Batch] = []
    for part in torch.arange(len(held_out.y)).split(size):
        [drawn] = views_once([{"row": part}], load)
        found.append(plain(held_out, part, prepare, False) | {name: drawn[name] for name in names})
    return found + [plain(known, part, prepare, True) for part in rows.split(size)]


def plain(images: Images, rows: Tensor, prepare: Preprocessing, known: bool) -> Batch:
    """Images as they are, all known to the probe or none."""
    x: Any = images.x[rows]
    marks = torch.full((len(rows),), known)
    return {"x": prepare.standardize(x), "y": images.y[rows], "ids": images.ids[rows], "known": marks}
