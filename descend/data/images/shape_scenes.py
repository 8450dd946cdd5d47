"""Scenes of one object, whose class is its shape: what self-supervised recipes look at when no path is given.

The colour of a scene is in its pixels for anyone to read, and so is a digit. A shape, of any colour, size and angle, at
any place, is not: a linear classifier of the raw pixels finds 23.5% where chance is 16.7%.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from descend.data.images.labelled import Images, Splits, split_by_class
from descend.data.images.source import SIDE, ImageSource
from descend.data.images.views import Viewing
from descend.data.streams.arrays import generator
from descend.data.toys.scenes import COLOURS, SHAPES, one_object
from descend.ranges import Count

SAME_SHAPE = Viewing(
    crop=1.0,
    turn=180.0,
    shift=0.1,
    zoom=0.35,
    outside="reflection",
    hue=0.5,
    colour=0.4,
    grey=0.0,
    negative=0.5,
    outline=0.5,
    light=0.2,
)
"""Views of a scene that have little in common but the shape. Each part takes away something that is easier to compare:
place and angle (turn, shift; black corners would tell how far from the middle), size (zoom), colour (hue, colour),
light or dark (negative, light), and the contrast with the ground (outline: without it probes stay near one half)."""


@dataclass(frozen=True)
class ShapeScenes(ImageSource):
    """Any number of scenes."""

    count: Count = 6000
    """Generated scenes, in all three parts."""

    def load_embedded(self) -> Splits:
        """The class is the shape."""
        found = one_object(self.count, self.size or SIDE, generator(0), [(s, c) for s in SHAPES for c in COLOURS])
        images = Images(found.x, found.shape[:, 0], torch.arange(self.count))
        test, valid, rest = split_by_class(images.y, (self.test, self.valid))
        return Splits(images.take(rest), images.take(valid), images.take(test), SHAPES)
