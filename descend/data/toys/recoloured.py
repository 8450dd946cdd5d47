"""Scenes in two domains, with the true translation known: each shape has one colour in X and another in Y.

    labels      X: flat label images, the shape's label colour on black       Y: shaded scenes on textured ground
    recolour    X: shaded scenes in X's colours                               Y: the same scenes in Y's colours

The pixels of a scene and of its translation differ in the object's colour alone, since both are drawn with the same
random numbers. What a translator has learned can be read off: the mean colour of the object in what it makes, and the
colour of the palette that is nearest to it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from descend.data.toys.scenes import COLOURS, RGB, SHAPES, draw_scenes
from descend.seeds import generator

MAP = {"circle": ("red", "green"), "cross": ("blue", "yellow"), "ring": ("purple", "orange")}
"""Shape -> its colour in X and in Y."""
RADIUS = 0.26, 0.36  # of the side
Source = Literal["labels", "recolour"]


@dataclass(frozen=True)
class Translations:
    """Pixels in −1..1 (n, 3, s, s) of both domains; which pixels are the object's (n, s, s); the true colour (n)."""

    x: Tensor
    y: Tensor
    mask: Tensor
    colour: Tensor


def draw_translations(n: int, side: int, seed: int, source: Source = "recolour") -> Translations:
    """n scenes and their translations; other seeds have other scenes."""
    names = list(MAP)
    kind = torch.randint(len(names), (n, 1), generator=generator(seed))
    shape = torch.tensor([SHAPES.index(name) for name in names])[kind]
    before, after = (torch.tensor([COLOURS.index(MAP[name][i]) for name in names])[kind] for i in (0, 1))
    present = torch.ones(n, 1, dtype=torch.bool)
    scenes = [draw_scenes(shape, c, present, side, generator(seed, 1), RADIUS) for c in (before, after)]
    mask = scenes[1].mask > 0
    x = scenes[0].x
    if source == "labels":
        x = torch.tensor(list(RGB.values()))[before[:, 0]][:, :, None, None] * mask[:, None]
    return Translations(2 * x - 1, 2 * scenes[1].x - 1, mask, after[:, 0])


def read_colour(images: Tensor, mask: Tensor) -> Tensor:
    """The number in COLOURS of the colour nearest to the object's mean (n), of images in −1..1."""
    share = mask[:, None].to(images)
    mean = ((images + 1) / 2 * share).sum(dim=(2, 3)) / share.sum(dim=(2, 3)).clamp(min=1)
    return torch.cdist(mean, torch.tensor(list(RGB.values())).to(mean)).argmin(dim=1)
