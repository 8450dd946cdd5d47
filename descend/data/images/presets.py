"""Named sets of augmentations, and the numbers that change them.

                  crop    flip   turn   colour   erase   count × magnitude
    none          1       0      0      0        0       0
    digits        0.85    0      10     0        0       0                     no flips: another digit, or none
    photographs   0.6     0.5    0      0.3      0       0
    randaugment   0.8     0.5    0      0        0.1     2 × 9

A number that is given takes the place of the set's.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Annotated

from descend.data.images.augment import Colour, Crop, Erase, Mirror, Transform, Turn
from descend.data.images.randaugment import RandAugment
from descend.errors import Mistake, nearest
from descend.ranges import PositiveShare, Range, Share


@dataclass(frozen=True)
class Amounts:
    """Strengths; those left out are the preset's."""

    crop: PositiveShare | None = None
    """Smallest side of the crop, as a share of the image's; 1: no crop."""
    flip: Share | None = None
    """Probability of a horizontal flip."""
    turn: Annotated[float, Range(float, least=0, most=180)] | None = None
    """Largest rotation, in degrees."""
    colour: Share | None = None
    """Largest change of brightness, contrast and saturation, as a share."""
    erase: Share | None = None
    """Share of the area that is erased."""
    count: Annotated[int, Range(int, least=0, most=14)] | None = None
    """RandAugment's N: operations on each image."""
    magnitude: Annotated[float, Range(float, least=0, most=10)] | None = None
    """RandAugment's M: their strength, 0..10."""


SETS = {
    "none": Amounts(1.0, 0.0, 0.0, 0.0, 0.0, 0, 0.0),
    "digits": Amounts(0.85, 0.0, 10.0, 0.0, 0.0, 0, 0.0),
    "photographs": Amounts(0.6, 0.5, 0.0, 0.3, 0.0, 0, 0.0),
    "randaugment": Amounts(0.8, 0.5, 0.0, 0.0, 0.1, 2, 9.0),
}
LIMITS = {"crop": (0.05, 1), "flip": (0, 1), "turn": (0, 180), "colour": (0, 1), "erase": (0, 0.9)}
LIMITS |= {"count": (0, 14), "magnitude": (0, 10)}


def augmentation(name: str, amounts: Amounts) -> tuple[Transform, ...]:
    """The transforms of a set, with the given amounts; those that would do nothing are left out."""
    if name not in SETS:
        raise Mistake(f"--data.augment {name}: choose {', '.join(SETS)}.{nearest(name, SETS)}")
    value = {}
    for f in fields(Amounts):
        given = getattr(amounts, f.name)
        value[f.name] = getattr(SETS[name], f.name) if given is None else given
        low, high = LIMITS[f.name]
        if not low <= value[f.name] <= high:
            raise Mistake(f"--data.amounts.{f.name} {value[f.name]}: give a number from {low} to {high}")
    colour = value["colour"]
    transforms: list[tuple[float, Transform]] = [
        (value["crop"] < 1, Crop(value["crop"])),
        (value["flip"], Mirror(value["flip"])),
        (value["turn"], Turn(value["turn"])),
        (value["count"] and value["magnitude"], RandAugment(int(value["count"]), value["magnitude"])),
        (colour, Colour(colour, colour, colour)),
        (value["erase"], Erase(value["erase"])),
    ]
    return tuple(transform for used, transform in transforms if used)
