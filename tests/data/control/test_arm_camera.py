"""What the camera shows is where the geometry says, in colour and in depth, for one scene or many."""

from __future__ import annotations

import pytest
import torch

from descend.data.control.arm_camera import fixed_camera, furnish, hand_camera, render
from descend.data.control.arm_world import CUBE, PAINTS, ArmWorld
from descend.data.toys.scenes import RGB
from descend.errors import Mistake
from descend.ops.robotics.camera import back_project, pixel_centres, project
from descend.ops.robotics.rigid import invert_rigid, move_points
from tests.close import close


@pytest.mark.system("pick-and-place", "camera")
def test_cubes_are_seen_where_they_are_projected_to() -> None:
    world, camera = ArmWorld(2, 2), fixed_camera(96)
    scene = world.reset(range(12))
    seen = render(scene, camera)
    top = scene.cubes + torch.tensor([0.0, 0.0, CUBE / 2 - 1e-3])
    at = project(move_points(invert_rigid(camera.pose(scene)), top), camera.k).long()
    paints = torch.tensor([RGB[name] for name in PAINTS])[scene.paint]
    found = seen.image[torch.arange(12)[:, None], :, at[..., 1], at[..., 0]]
    hue = lambda x: x / x.norm(dim=-1, keepdim=True)
    near = (hue(found) * hue(paints)).sum(-1) > 0.99
    assert near.double().mean() > 0.9  # the others are hidden by the arm


@pytest.mark.system("pick-and-place", "camera")
def test_depth_back_projects_onto_the_table_and_the_cubes() -> None:
    world, camera = ArmWorld(1), fixed_camera(64)
    scene = world.reset([2])
    depth = render(scene, camera).depth.flatten(1).double()
    points = move_points(camera.pose(scene), back_project(pixel_centres(64, 64)[None], depth, camera.k))[0]
    on_table = points[:, 2].abs() < 1e-4
    assert on_table.double().mean() > 0.5
    assert points[:, 2].min() > -1e-4
    inside = (points - scene.cubes[0, 0]).abs().amax(-1)
    assert ((inside - CUBE / 2).abs() < 1e-4).sum() >= 4  # points on the faces of the cube
    assert not (inside < CUBE / 2 - 1e-3).any()


@pytest.mark.system("pick-and-place", "camera")
def test_many_scenes_are_rendered_as_each_alone() -> None:
    world, camera = ArmWorld(2, 2), fixed_camera(32)
    whole = render(world.reset([1, 2, 3]), camera)
    alone = render(world.reset([2]), camera)
    close(whole.image[1], alone.image[0])
    close(whole.depth[1], alone.depth[0])
    assert whole.image.shape == (3, 3, 32, 32)
    assert 0 <= whole.image.min() < whole.image.max() <= 1


def test_the_nearest_thing_is_seen() -> None:
    """A ray through the middle of the image against a plain loop over the boxes."""
    world, camera = ArmWorld(2, 2), fixed_camera(24)
    scene = world.reset([7])
    solids, pose = furnish(scene), camera.pose(scene)[0]
    depth = render(scene, camera).depth[0].double()
    rays = torch.cat([(pixel_centres(24, 24) - camera.k[:2, 2]) / camera.k[0, 0], torch.ones(576, 1)], -1)
    for pixel in range(0, 576, 37):
        nearest = float("inf")
        way = pose[:3, :3] @ rays[pixel]
        if way[2] < 0:
            nearest = float(-pose[2, 3] / way[2])
        for c, r, h in zip(solids.centre[0], solids.turn[0], solids.half[0], strict=True):
            o, d = r.T @ (pose[:3, 3] - c), r.T @ way
            ends = torch.stack([(-h - o) / d, (h - o) / d])
            enter, leave = float(ends.amin(0).max()), float(ends.amax(0).min())
            if 0 < enter < leave:
                nearest = min(nearest, enter)
        assert float(depth.flatten()[pixel]) == pytest.approx(nearest, rel=1e-4)


def test_a_camera_on_the_hand_moves_with_it() -> None:
    world, camera = ArmWorld(), hand_camera(24, 32)
    scene = world.reset([0])
    moved = world.step(scene, torch.tensor([[0.3, 0, 0, 0, 0, 0, 1.0]]))
    assert render(scene, camera).image.shape == (1, 3, 24, 32)
    assert not torch.equal(render(scene, camera).image, render(moved, camera).image)
    with pytest.raises(Mistake, match=r"hand-eye transform: not in SO\(3\): det R = -1"):
        hand_camera(hand_eye=torch.diag(torch.tensor([1.0, -1.0, 1.0, 1.0])))
