"""From pixels to a moving arm: camera, detection, localisation, policy, kinematics, transmission; each may be another.

    every time that a new plan is needed      image, depth -> boxes -> places of cube and bin -> state s -> chunk
    in every step                             command -> joint angles within speed and limits -> the arm, which answers

The state is that of MF 30.3, with places that were seen instead of known ones. While the fingers are closed the cube is
taken to be between them: they hide it. Stages are timed apart, and their budget is compared with the book's.

Systems: perception-control-pipeline, vlm-to-policy, pick-and-place
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor

from descend.contracts import PlansActions
from descend.data.control.arm_camera import Camera, View, render
from descend.data.control.arm_world import JOINTS, SPEED, ArmWorld, Scene, tips
from descend.data.control.episodes import AverageChunks, EpisodeChance, RunChunks
from descend.errors import Mistake
from descend.inference.scene_reader import ColourDetector, SceneReader
from descend.ops.robotics.execution import apply_increment
from descend.ops.robotics.kinematics import UR10E
from descend.theory.latency import BOOK, Budget


class Stopwatch:
    """Seconds that each stage took, time after time."""

    def __init__(self) -> None:
        self.times: dict[str, list[float]] = {name: [] for name in BOOK}

    @contextmanager
    def measure(self, stage: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self.times[stage].append(time.perf_counter() - start)

    def budget(self) -> Budget:
        """The median of each stage, in ms; of a stage that was never reached 0."""
        return Budget({name: 1000 * statistics.median(took) if took else 0.0 for name, took in self.times.items()})


class Acted(NamedTuple):
    """An episode that is over."""

    scene: Scene
    success: bool
    steps: int
    error: float
    """How far off the cube was located at first, in metres."""


@dataclass
class ControlLoop:
    """One arm, one camera. Another depth sensor overrides `see`; detector, policy and world are given."""

    world: ArmWorld
    camera: Camera
    policy: PlansActions
    reader: SceneReader
    execute: RunChunks | AverageChunks
    watch: Stopwatch = field(default_factory=Stopwatch)

    @classmethod
    def make(
        cls, world: ArmWorld, camera: Camera, policy: PlansActions, execute: RunChunks | AverageChunks
    ) -> ControlLoop:
        """With the detector of colours."""
        return cls(world, camera, policy, SceneReader(camera, ColourDetector()), execute)

    def see(self, scene: Scene) -> View:
        """Colour and depth; overridden where the depth comes from another sensor."""
        return render(scene, self.camera)

    def look(self, scene: Scene, text: str, known: Tensor | None) -> Tensor:
        """Where cube and bin are (1, 3 + 2 or 3), by what is seen now; `known` holds for what is hidden, and while the
        fingers are closed."""
        with self.watch.measure("camera"):
            seen = self.see(scene)
        with self.watch.measure("detection"):
            boxes = self.reader.detect(seen.image)
        with self.watch.measure("localisation"):
            if known is not None and bool(scene.grip[0] < 0.5):
                return torch.cat([tips(scene.theta), known[:, 3:]], dim=-1)
            try:
                found = self.reader.place(text, boxes, seen.depth, self.camera.pose(scene))
            except Mistake:
                if known is None:
                    raise
                return known  # the arm hides what it reaches for: it is where it was seen last
            places = found.place if self.world.bins > 1 else found.place[:, :0]
            return torch.cat([found.cube, places], dim=-1)

    @torch.no_grad()
    def run(self, scene: Scene, text: str, seed: int = 0) -> Acted:
        """Play one episode (a scene of one) by a request, until it succeeds or time is up."""
        command, chance = self.execute.begin(), EpisodeChance([seed])
        known: Tensor | None = None
        first: list[float] = []

        def ask(now: Scene) -> Tensor:
            nonlocal known
            known = self.look(now, text, known)
            first.append(float((known[:, :3] - now.of_target()).norm()))
            state = torch.cat([now.theta, now.grip[:, None], known], dim=-1).float()
            with self.watch.measure("policy"):
                return self.policy.plan({"state": state}, chance)

        for step in range(self.world.longest):
            now = scene
            wanted = command(now.theta, lambda now=now: ask(now))  # type: ignore[misc]
            with self.watch.measure("kinematics"):
                theta = apply_increment(UR10E, now.theta, wanted[:, :JOINTS] - now.theta, SPEED)
            with self.watch.measure("transmission"):
                scene = self.world.step(now, torch.cat([theta - now.theta, wanted[:, JOINTS:]], dim=-1))
            if bool(self.world.succeeded(scene)[0]):
                return Acted(scene, True, step + 1, first[0])
        return Acted(scene, False, self.world.longest, first[0])
