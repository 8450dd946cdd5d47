"""Scenes with depth: near objects are large and hide far ones.

    pinhole     radius in pixels = f R / z: of objects of equal size R, one at twice the distance z looks half as large
    painter     far objects first, so that each pixel shows the nearest object that has its centre
    depth map   z of that object; of the ground, `FAR`

Distances are in units of that of the largest object, which has z = 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from descend.data.toys.scenes import COLOURS, SHAPES, TILT, Scenes, paint_scenes, places, stand
from descend.errors import Mistake

NEAR_RADIUS, FAR_RADIUS = 0.28, 0.07  # of the nearest and the farthest object, as shares of the side
FAR = 6.0  # the ground


@dataclass(frozen=True)
class DeepScenes:
    """Scenes whose objects are in the order of their distance, the farthest first."""

    scenes: Scenes
    distance: Tensor
    """z of each object (n, o); 0 where there is none."""
    depth: Tensor
    """z of what each pixel shows (n, s, s)."""


def deep_scenes(
    n: int,
    side: int,
    random: torch.Generator,
    objects: tuple[int, int] = (2, 4),
    radius: tuple[float, float] = (FAR_RADIUS, NEAR_RADIUS),
) -> DeepScenes:
    """n scenes of least to most `objects`; `radius` of the farthest and the nearest, as shares of the side."""
    least, most = objects
    if not 1 <= least <= most or not 0 < radius[0] <= radius[1] <= 0.5:
        raise Mistake(f"objects {least} to {most}, radius {radius}: at least 1, and 0 < far <= near <= 0.5")
    shape = torch.randint(len(SHAPES), (n, most), generator=random)
    colour = torch.randint(len(COLOURS), (n, most), generator=random)
    count = torch.randint(least, most + 1, (n, 1), generator=random)
    present = torch.arange(most) < count
    place = places(present, side, random, radius)
    order = place[..., 2].argsort(dim=1, stable=True)  # small is far
    shape, colour, present = (values.gather(1, order) for values in (shape, colour, present))
    place = place.gather(1, order[..., None].expand_as(place))
    place[..., 3] = stand(shape) + TILT * place[..., 3]
    found = paint_scenes(shape, colour, present, place, side, random)
    distance = radius[1] * side / place[..., 2]
    known = torch.cat([torch.full((n, 1), FAR), distance], dim=1)
    depth = known.gather(1, found.instance.flatten(1)).view_as(found.instance)
    return DeepScenes(found, distance * found.present, depth)
