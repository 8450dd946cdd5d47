"""The world of the arm: grasping, carrying, dropping, and the scripted demonstrations."""

from __future__ import annotations

import pytest
import torch

from descend.data.control.arm_world import APART, BIN, CUBE, JOINTS, ArmWorld, Scene, reach, tips
from descend.data.control.scripted import PHASES, demonstrate, plan_phases
from descend.errors import Mistake
from descend.ops.robotics.kinematics import UR10E, link_frames
from tests.close import close


def play(world: ArmWorld, scene: Scene, commands: torch.Tensor) -> list[Scene]:
    """Follow commands; the scene after every step."""
    found = [scene]
    for command in commands.unbind(1):
        turn = command[:, :JOINTS] - found[-1].theta
        found.append(world.step(found[-1], torch.cat([turn, command[:, JOINTS:]], -1)))
    return found


@pytest.mark.system("pick-and-place")
@pytest.mark.system("pick-and-place", "phases")
@pytest.mark.parametrize("pace", [1, 2])
def test_the_books_phases_place_every_cube(pace: int) -> None:
    """Sixteen actions: four to move, one to reach, one to close, eight to lift and carry, two to open."""
    assert list(PHASES.values()) == [4, 1, 1, 8, 2]
    world = ArmWorld(pace=pace)
    start = world.reset(range(50))
    commands = demonstrate(world, start)
    assert commands.shape == (50, 16 * pace, 7)
    scenes = play(world, start, commands)
    phase = [len(plan_phases(pace)[: plan_phases(pace).index(name)]) for name in PHASES]
    reached, closed, opened = scenes[phase[2]], scenes[phase[3]], scenes[phase[4]]
    close(tips(reached.theta), start.of_target())
    assert (reached.held < 0).all()
    assert (closed.held == 0).all()
    assert (opened.held == 0).all()
    assert (scenes[-1].held < 0).all()
    assert world.succeeded(scenes[-1]).all()


@pytest.mark.system("pick-and-place", "demonstrations")
def test_demonstrations_succeed_with_any_target_and_bin() -> None:
    world = ArmWorld(2, 2)
    start = world.reset(range(100))
    assert len({*zip(start.target.tolist(), start.place.tolist(), strict=True)}) == 4
    end = play(world, start, demonstrate(world, start))[-1]
    judged = world.judge(end)
    assert judged["success"].mean() == 1
    assert judged["named"].mean() == 1
    swapped = end.changed(target=1 - end.target)
    assert world.judge(swapped)["success"].mean() == 0
    assert world.judge(swapped)["named"].mean() == 0


def test_a_cube_is_held_only_if_the_fingers_are_around_it() -> None:
    world = ArmWorld()
    scene = world.reset([0, 0])
    off = torch.tensor([[0.0, 0, 0], [CUBE / 2 + 0.005, 0, 0]], dtype=torch.float64)
    scene = scene.changed(theta=reach(scene.of_target() + off, scene.theta))
    shut = torch.cat([torch.zeros(2, JOINTS), torch.zeros(2, 1)], -1)
    for _ in range(2):
        scene = world.step(scene, shut)
    assert scene.held.tolist() == [0, -1]
    assert scene.first.tolist() == [0, -1]


def test_a_held_cube_follows_and_falls() -> None:
    world = ArmWorld()
    scene = world.reset([3])
    scene = scene.changed(theta=reach(scene.of_target() + torch.tensor([[0.01, 0, 0]]), scene.theta))
    for _ in range(2):
        scene = world.step(scene, torch.zeros(1, 7))
    lifted = reach(tips(scene.theta) + torch.tensor([[0.0, 0.05, 0.1]]), scene.theta)
    scene = world.step(scene, torch.cat([lifted - scene.theta, torch.zeros(1, 1)], -1))
    close(scene.cubes[0, 0], tips(scene.theta)[0] - torch.tensor([0.01, 0, 0], dtype=torch.float64), loosen=1e3)
    dropped = scene
    for _ in range(2):
        dropped = world.step(dropped, torch.cat([torch.zeros(1, JOINTS), torch.ones(1, 1)], -1))
    assert dropped.held.tolist() == [-1]
    assert float(dropped.cubes[0, 0, 2]) == CUBE / 2
    close(dropped.cubes[0, 0, :2], scene.cubes[0, 0, :2])
    assert not world.succeeded(dropped).any()


def test_scenes_are_as_they_should_be() -> None:
    world = ArmWorld(3, 2)
    scene = world.reset(range(300))
    gap = torch.cdist(scene.cubes, scene.cubes) + torch.eye(3) * 9
    assert gap.amin() > APART - 0.05
    assert (gap.amin((1, 2)) > APART).double().mean() > 0.97
    assert all(len({*row}) == 3 for row in scene.paint.tolist())
    assert all(len({*row}) == 2 for row in scene.bin_paint.tolist())
    assert (scene.cubes[..., 1].abs().amax() + BIN / 2) < 0.42
    assert (link_frames(UR10E, scene.theta)[:, 1:, 2, 3] > 0.1).all()  # the arm is above the table
    assert world.state(scene).shape == (300, 12)
    with pytest.raises(Mistake, match="5 cubes and 1 bins"):
        ArmWorld(5)
