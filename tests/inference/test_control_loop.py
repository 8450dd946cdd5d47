"""From pixels to a placed cube: every stage can be another, and each is timed."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from descend.contracts import Batch, Boxes, Chance
from descend.data.control.arm_camera import View, fixed_camera, hand_camera, render
from descend.data.control.arm_world import CUBE, PAINTS, ArmWorld, Scene
from descend.data.control.episodes import RunChunks
from descend.data.control.instructions import compose
from descend.data.control.scripted import ScriptedPolicy
from descend.errors import Mistake
from descend.inference.control_loop import ControlLoop, Stopwatch
from descend.inference.scene_reader import ColourDetector, SceneReader
from descend.ops.robotics.camera import project
from descend.ops.robotics.rigid import invert_rigid, move_points
from descend.theory.latency import BOOK

CAMERA = fixed_camera(96, 128)
WHOLE = RunChunks(64)


def told(scene: Scene) -> str:
    return compose(scene, torch.zeros(len(scene), dtype=torch.long))[0]


@pytest.mark.system("perception-control-pipeline")
@pytest.mark.system("perception-control-pipeline", "closed-loop")
@pytest.mark.system("vlm-to-policy", "executed")
def test_cubes_are_placed_by_what_is_seen() -> None:
    world = ArmWorld(2, 2)
    loop = ControlLoop.make(world, CAMERA, ScriptedPolicy(world), WHOLE)
    for seed in range(4):
        scene = world.reset([seed])
        cube, place = scene.paint[0, scene.target], scene.bin_paint[0, scene.place]
        acted = loop.run(scene, f"pick {PAINTS[int(cube)]}, place {PAINTS[int(place)]}", seed)
        assert acted.success
        assert acted.error < 0.01
        assert acted.steps <= 32


@pytest.mark.system("vlm-to-policy")
@pytest.mark.system("vlm-to-policy", "executed", "swapped")
def test_swapped_words_and_swapped_colours_swap_the_target() -> None:
    world = ArmWorld(2, 2)
    loop = ControlLoop.make(world, CAMERA, ScriptedPolicy(world), WHOLE)
    scene = world.reset([11]).changed(target=torch.tensor([0]), place=torch.tensor([0]))
    a, b = (PAINTS[k] for k in scene.paint[0].tolist())
    p, q = (PAINTS[k] for k in scene.bin_paint[0].tolist())
    first = loop.run(scene, f"pick {a}, place {p}")
    assert first.success
    assert first.scene.first.tolist() == [0]
    words = loop.run(scene, f"pick {b}, place {q}")
    assert not words.success  # by what the first request asked for
    assert words.scene.first.tolist() == [1]
    assert (words.scene.cubes[0, 1, :2] - scene.bins[0, 1]).abs().max() < 0.08
    painted = scene.changed(paint=scene.paint.flip(1), bin_paint=scene.bin_paint.flip(1))
    colours = loop.run(painted, f"pick {a}, place {p}")
    assert colours.scene.first.tolist() == [1]
    assert (colours.scene.cubes[0, 1, :2] - scene.bins[0, 1]).abs().max() < 0.08


class TrueBoxes:
    """A detector that knows the scene: it stands for any trained one."""

    stride = 1

    def __init__(self, scene: Scene):
        corners = torch.tensor([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) * CUBE / 2
        points = move_points(invert_rigid(CAMERA.pose(scene)), scene.cubes[0, :1] + corners)
        at = project(points, CAMERA.k)[0]
        self.box = torch.cat([at.amin(0), at.amax(0)]).float()
        self.paint = scene.paint[0, 0]

    def __call__(self, x: Tensor) -> Tensor:
        return x

    def decode(self, found: Tensor, least: float = 0.001, most: int = 100) -> Boxes:
        return Boxes(self.box[None, None], self.paint.view(1, 1), torch.ones(1, 1))


class SeenOnce(ColourDetector):
    """Everything at first, and nothing after that."""

    def __init__(self) -> None:
        super().__init__()
        self.looks = 0

    def decode(self, found: Tensor, least: float = 0.001, most: int = 100) -> Boxes:
        self.looks += 1
        boxes = super().decode(found, least, most)
        return boxes if self.looks == 1 else boxes._replace(classes=torch.full_like(boxes.classes, -1))


def test_what_is_hidden_is_where_it_was_seen_last() -> None:
    world = ArmWorld()
    scene = world.reset([5])
    loop = ControlLoop(world, CAMERA, ScriptedPolicy(world), SceneReader(CAMERA, SeenOnce()), WHOLE)
    seen = loop.look(scene, told(scene), None)
    assert (seen[:, :3] - scene.of_target()).norm() < 0.01
    assert torch.equal(loop.look(scene, told(scene), seen), seen)
    with pytest.raises(Mistake, match="can be seen"):  # a thing that was never seen is a mistake
        loop.look(scene, told(scene), None)


class Sleeper:
    """A policy that does nothing."""

    chunk = 4

    def plan(self, seen: Batch, chance: Chance) -> Tensor:
        assert seen["state"].shape == (1, 10)
        return torch.cat([torch.zeros(1, 4, 6), torch.ones(1, 4, 1)], dim=-1)


class NoisyDepth(ControlLoop):
    """A depth sensor with an error of 2 mm."""

    def see(self, scene: Scene) -> View:
        seen = render(scene, self.camera)
        error = torch.randn(seen.depth.shape, generator=torch.Generator().manual_seed(0))
        return View(seen.image, seen.depth + 0.002 * error)


@pytest.mark.system("perception-control-pipeline", "pluggable")
def test_detector_depth_policy_camera_and_world_can_each_be_another() -> None:
    world = ArmWorld()
    scene = world.reset([5])
    script, colours = ScriptedPolicy(world), SceneReader(CAMERA, ColourDetector())
    text = f"pick {PAINTS[int(scene.paint[0, 0])]}"
    known = ControlLoop(world, CAMERA, script, SceneReader(CAMERA, TrueBoxes(scene)), WHOLE)
    assert known.run(scene, text).success
    assert NoisyDepth(world, CAMERA, script, colours, WHOLE).run(scene, text).success
    on_hand = hand_camera(96, 128)
    assert ControlLoop.make(world, on_hand, script, WHOLE).run(world.reset([6]), told(world.reset([6]))).success
    slow = ArmWorld(pace=3)
    assert ControlLoop.make(slow, CAMERA, ScriptedPolicy(slow), RunChunks(99)).run(slow.reset([5]), text).success
    idle = ControlLoop.make(world, CAMERA, Sleeper(), RunChunks(4)).run(scene, text)
    assert not idle.success
    assert idle.steps == world.longest


@pytest.mark.system("perception-control-pipeline", "pluggable")
def test_stages_are_those_of_the_book_and_timed_apart() -> None:
    world = ArmWorld()
    loop = ControlLoop.make(world, CAMERA, Sleeper(), RunChunks(4))
    scene = world.reset([0])
    loop.run(scene, f"pick {PAINTS[int(scene.paint[0, 0])]}")
    budget = loop.watch.budget()
    assert list(budget.stages) == list(BOOK)
    assert all(took > 0 for took in budget.stages.values())
    assert len(loop.watch.times["policy"]) == len(loop.watch.times["camera"]) == world.longest / 4
    assert len(loop.watch.times["transmission"]) == world.longest
    assert Stopwatch().budget().total == 0
