"""Scenes whose classes are pairs of colour and shape, "red circle"; some pairs are shown in the test part only.

    pairs    6 shapes × 8 colours = 48 names; those with (shape + colour) a multiple of 4 are kept apart: 12 of them
    train, valid    scenes of the other 36;        test    scenes of the 12 alone

Every colour and every shape is seen in training, in other company. A user's folder has its own names, none kept apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import product

import torch

from descend.data.detection.objects import DetectionSplits, Objects, StackedPixels
from descend.data.detection.source import OBJECTS, DetectionSource, count_pixels
from descend.data.images.labelled import check_shares
from descend.data.streams.arrays import generator
from descend.data.toys.scenes import COLOURS, SHAPES, draw_scenes
from descend.errors import Mistake

EVERY = 4
Pair = tuple[int, int]
"""Numbers of a shape and of a colour."""


def pair_up() -> tuple[list[Pair], list[Pair]]:
    """The pairs to train on, and those kept apart."""
    parts: tuple[list[Pair], list[Pair]] = ([], [])
    for shape, colour in product(range(len(SHAPES)), range(len(COLOURS))):
        parts[(shape + colour) % EVERY == 0].append((shape, colour))
    return parts


def name_pairs(pairs: list[Pair]) -> tuple[str, ...]:
    return tuple(f"{COLOURS[colour]} {SHAPES[shape]}" for shape, colour in pairs)


@dataclass(frozen=True)
class ColourShapes(DetectionSource):
    """Generated scenes named by colour and shape, or a folder with names of its own."""

    @property
    def apart(self) -> int:
        """How many of the names, the last ones, are in the test part only."""
        return 0 if self.path else len(pair_up()[1])

    def read(self) -> DetectionSplits:
        """The three parts."""
        if self.path:
            return super().read()
        check_shares(self.valid, self.test)
        seen, apart = pair_up()
        test, valid = (max(1, round(share * self.scenes)) for share in (self.test, self.valid))
        if test + valid >= self.scenes:
            raise Mistake(f"--data.scenes {self.scenes} are too few for three parts; give at least 3, better 300")
        parts = [
            generate_pairs(count, self.side, tuple(pairs), first, number)
            for number, (count, pairs, first) in enumerate(
                ((self.scenes - test - valid, seen, 0), (valid, seen, 0), (test, apart, len(seen)))
            )
        ]
        facts = {"kept apart": ", ".join(name_pairs(apart))}
        return DetectionSplits(parts[0], parts[1], parts[2], name_pairs(seen + apart), facts)


@lru_cache(maxsize=6)
def generate_pairs(n: int, side: int, pairs: tuple[Pair, ...], first: int, part: int) -> Objects:
    """n scenes of objects of these pairs, always the same ones; pair i is class first + i."""
    random = generator(11, part)
    least, most = OBJECTS
    chosen = torch.randint(len(pairs), (n, most), generator=random)
    count = torch.randint(least, most + 1, (n, 1), generator=random)
    shape, colour = torch.tensor(pairs)[chosen].unbind(-1)
    found = draw_scenes(shape, colour, torch.arange(most) < count, side, random)
    owner, which = found.present.nonzero(as_tuple=True)
    x = (found.x * 255).round().to(torch.uint8).movedim(1, 3).contiguous()
    return Objects(
        StackedPixels(x),
        torch.full((n, 2), side),
        found.box[owner, which].double(),
        owner,
        first + chosen[owner, which],
        torch.zeros(len(owner), dtype=torch.bool),
        count_pixels(found.instance, found.present),
        torch.arange(n),
        tuple(f"scene {part}.{i}" for i in range(n)),
    )
