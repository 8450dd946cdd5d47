"""Depth: the nearest object is what a pixel shows, and its size says how far it is."""

from __future__ import annotations

import torch

from descend.data.streams.arrays import generator
from descend.data.toys.deep_scenes import FAR, deep_scenes
from descend.data.toys.scenes import scenes
from tests.close import close


def test_near_hides_far_and_looks_larger() -> None:
    found = deep_scenes(40, 64, generator(0))
    present = found.scenes.present
    for i in range(40):
        z = found.distance[i][present[i]]
        assert (z.diff() <= 0).all()
        assert (z >= 1 - 1e-5).all()
    ground = found.scenes.instance == 0
    assert (found.depth[ground] == FAR).all()
    assert (found.depth[~ground] < FAR).all()
    number = (found.scenes.instance - 1).clamp_min(0)
    z = found.distance.gather(1, number.flatten(1)).view_as(found.depth)
    close(found.depth[~ground], z[~ground])


def test_size_times_distance_is_the_same() -> None:
    """Of lone circles: width · z = 2 · near radius · side, to the pixels' rounding."""
    found = deep_scenes(200, 96, generator(1), objects=(1, 1))
    circle = found.scenes.shape[:, 0] == 0
    box, z = found.scenes.box[circle, 0], found.distance[circle, 0]
    width = box[:, 2] - box[:, 0]
    assert ((width - 2 * 0.28 * 96 / z).abs() <= 2).all()
    assert z.max() > 2


def test_instances_are_the_mask() -> None:
    found = scenes(30, 48, generator(3), objects=(0, 4), radius=(0.03, 0.08))
    shape = torch.cat([torch.full((30, 1), -1), found.shape], 1)
    assert torch.equal(shape.gather(1, found.instance.flatten(1)).view_as(found.mask) + 1, found.mask)
    size = (found.box[..., 2:] - found.box[..., :2])[found.present]
    assert size.max() <= 2 * 0.08 * 48 + 2
