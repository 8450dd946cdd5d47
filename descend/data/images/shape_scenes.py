"""Scenes of one object, whose class is its shape: what self-supervised recipes look at when no path is given.

The colour of a scene is in its pixels for anyone to read, and so is a digit. A shape, of any colour, size and angle, at
any place, is not: a linear classifier of the raw pixels finds 23.5% where chance is 16.7%.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from descend.data.images.labelled import Images, Splits, split_by_class
from descend.data.images.source import SIDE, ImageSource
from descend.data.streams.arrays import generator
from descend.data.toys.scenes import COLOURS, SHAPES, one_object
from descend.ranges import Count


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
