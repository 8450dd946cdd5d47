"""A few labelled images of each class: what transfer learning starts from when labels are scarce.

Without a path they are scenes of one object, and a class is a colour and a shape ("red star"). The 48 pairs make a
chess board: `first` are its black fields, `second` its white ones, so both halves know every colour and every shape,
and no class of one is a class of the other. Only the training part is cut down; validation and test stay whole.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

from descend.data.images.labelled import Images, Splits, split_by_class
from descend.data.images.source import SIDE, ImageSource
from descend.data.streams.arrays import generator
from descend.data.toys.scenes import COLOURS, SHAPES, one_object
from descend.errors import Mistake
from descend.ranges import Whole

SCENES = 4800


@dataclass(frozen=True)
class FewImages(ImageSource):
    """A limited number of training images per class."""

    each: Whole = 5
    """Training images per class; 0: all."""
    half: str = "second"
    """Which pairs of colour and shape the generated scenes show: first or second."""

    def read(self) -> Splits:
        return fewest(super().read(), self.each)

    def load_embedded(self) -> Splits:
        """Scenes of one object; the class is its colour and shape."""
        pairs = board(self.half)
        found = one_object(SCENES, self.size or SIDE, generator(0, self.half == "second"), pairs)
        number = torch.full((len(SHAPES), len(COLOURS)), -1)
        for k, (shape, colour) in enumerate(pairs):
            number[SHAPES.index(shape), COLOURS.index(colour)] = k
        images = Images(found.x, number[found.shape[:, 0], found.colour[:, 0]], torch.arange(SCENES))
        test, valid, rest = split_by_class(images.y, (self.test, self.valid))
        names = tuple(f"{colour} {shape}" for shape, colour in pairs)
        return Splits(images.take(rest), images.take(valid), images.take(test), names)

    @property
    def source(self) -> str:
        return self.path or f"generated scenes, the {self.half} half of the pairs of colour and shape"


def board(half: str) -> list[tuple[str, str]]:
    """The (shape, colour) pairs of a half."""
    if half not in ("first", "second"):
        raise Mistake(f"--data.half {half}: choose first or second")
    return [
        (shape, colour)
        for i, shape in enumerate(SHAPES)
        for j, colour in enumerate(COLOURS)
        if (i + j) % 2 == (half == "second")
    ]


def fewest(splits: Splits, each: int) -> Splits:
    """The first `each` training images of every class, in the order of the data; 0 leaves them all."""
    if each < 0:
        raise Mistake(f"--data.each {each}: give the number of images per class, or 0 for all")
    if not each:
        return splits
    y = splits.train.y
    rows = torch.cat([(y == k).nonzero().flatten()[:each] for k in range(len(splits.labels))])
    return replace(splits, train=splits.train.take(rows.sort().values))
