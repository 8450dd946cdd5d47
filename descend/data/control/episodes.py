"""Whole episodes of the arm, all at once: a policy plans, its chunks are executed, the world judges.

    run chunks       the first k actions of a chunk, then a new one (receding horizon); k = T: open loop
    average chunks   a new chunk at every step; all predictions for now are averaged (temporal ensembling)

Both turn increments into the angles that they mean, and the action is what is missing to them from where the arm is:
the loop has feedback. Random numbers of a policy belong to the episode's seed. Finished episodes stay as they are.

Systems: act-policy, diffusion-policy, pick-and-place
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from descend.contracts import Batch, Chance
from descend.data.control.arm_camera import Camera, render
from descend.data.control.arm_world import JOINTS, ArmWorld, Scene
from descend.data.control.instructions import compose
from descend.ops.robotics.execution import ensemble, to_commands
from descend.ranges import Count, NonNegative
from descend.seeds import generator

Plan = Callable[[Batch, Chance], Tensor]
"""(what is seen, random numbers) -> chunks (b, T, 7)"""
CHANCE = 7  # keeps the random numbers of a policy apart from those of its world


class EpisodeChance:
    """Random numbers that belong to the seeds of episodes, whatever else is in the batch."""

    def __init__(self, seeds: Sequence[int]):
        self.generators = [generator(int(seed), CHANCE) for seed in seeds]

    @property
    def count(self) -> int:
        return len(self.generators)

    def normal(self, *shape: int) -> Tensor:
        return torch.stack([torch.randn(shape, generator=random) for random in self.generators])

    def uniform(self, *shape: int) -> Tensor:
        return torch.stack([torch.rand(shape, generator=random) for random in self.generators])


class Executor(Protocol):
    """Asked once a step: where the arm is (b, 6), and a way to get a new chunk -> the command for this step (b, 7)."""

    def __call__(self, theta: Tensor, ask: Callable[[], Tensor]) -> Tensor: ...


@dataclass(frozen=True)
class RunChunks:
    """A part of each chunk is executed, then the policy is asked again."""

    steps: Count = 8
    """Actions of each chunk that are executed; a chunk that is shorter is executed whole."""

    def begin(self) -> Executor:
        left: list[Tensor] = []

        def command(theta: Tensor, ask: Callable[[], Tensor]) -> Tensor:
            if not left:
                left.extend(to_commands(theta, ask().double()).unbind(dim=1)[: self.steps])
            return left.pop(0)

        return command


@dataclass(frozen=True)
class AverageChunks:
    """The policy is asked at every step, and what its last chunks say about now is averaged."""

    m: NonNegative = 0.01
    """How much less a newer prediction counts than the one before it: exp(−m)."""

    def begin(self) -> Executor:
        made: list[Tensor] = []  # chunks that still speak about now, the oldest first; each without what is past

        def command(theta: Tensor, ask: Callable[[], Tensor]) -> Tensor:
            made.append(to_commands(theta, ask().double()))
            now = torch.stack([chunk[:, 0] for chunk in made], dim=1)
            found = ensemble(now, torch.arange(len(made) - 1, -1, -1), self.m)
            made[:] = [chunk[:, 1:] for chunk in made if chunk.shape[1] > 1]
            return found

        return command


class Senses:
    """What a policy is given: the state with the places of things, or image, words and the arm's own state."""

    def __init__(
        self, world: ArmWorld, camera: Camera | None = None, encode: Callable[[list[str]], Tensor] | None = None
    ):
        self.world, self.camera, self.encode = world, camera, encode

    def read(self, scene: Scene, texts: Sequence[str] = ()) -> Tensor | None:
        """The instructions of episodes as tokens, once for each: the scene's own unless others are given."""
        if self.encode is None:
            return None
        return self.encode(list(texts) or compose(scene, torch.zeros(len(scene), dtype=torch.long)))

    def observe(self, scene: Scene, tokens: Tensor | None) -> Batch:
        if self.camera is None:
            return {"state": self.world.state(scene)}
        seen = {"state": own_state(scene), "image": quantize(render(scene, self.camera).image)}
        return seen if tokens is None else seen | {"tokens": tokens}


def own_state(scene: Scene) -> Tensor:
    """What the arm knows of itself: angles and gripper (b, 7)."""
    return torch.cat([scene.theta, scene.grip[:, None]], dim=-1).float()


def quantize(image: Tensor) -> Tensor:
    """Colours as a camera gives them, in steps of 1/255."""
    return (image * 255).round() / 255


class Played(NamedTuple):
    """Episodes that are over."""

    scene: Scene
    scores: dict[str, Tensor]
    """What each is worth (b)."""
    steps: Tensor
    """After how many steps each succeeded; the longest where it did not (b)."""
    frames: list[Tensor]
    """Images (b, 3, h, w) after each step that was watched."""


@torch.no_grad()
def play(
    plan: Plan,
    senses: Senses,
    start: Scene,
    seeds: Sequence[int],
    execute: RunChunks | AverageChunks,
    texts: Sequence[str] = (),
    watch: Camera | None = None,
) -> Played:
    """Play from a scene until all have succeeded or time is up."""
    world, scene, tokens = senses.world, start, senses.read(start, texts)
    chance, command = EpisodeChance(seeds), execute.begin()
    done = torch.zeros(len(scene), dtype=torch.bool)
    steps, frames = torch.full((len(scene),), world.longest), []
    if watch is not None:
        frames.append(render(scene, watch).image)
    for step in range(world.longest):
        now = scene
        wanted = command(now.theta, lambda now=now: plan(senses.observe(now, tokens), chance))  # type: ignore[misc]
        action = torch.cat([wanted[:, :JOINTS] - now.theta, wanted[:, JOINTS:]], dim=-1)
        scene = choose_scenes(done, now, world.step(now, action))
        fresh = world.succeeded(scene) & ~done
        steps[fresh], done = step + 1, done | fresh
        if watch is not None:
            frames.append(render(scene, watch).image)
        if bool(done.all()):
            break
    return Played(scene, world.judge(scene), steps, frames)


def choose_scenes(first: Tensor, a: Scene, b: Scene) -> Scene:
    """Scene a where `first` (b), else b."""
    parts = {
        name: torch.where(first.view(-1, *(1,) * (old.dim() - 1)), old, getattr(b, name))
        for name, old in vars(a).items()
    }
    return type(a)(**parts)
