"""Imitation recipes: an arm learns from demonstrations, and is judged by the episodes that it plays.

Demonstrations are scripted, or read from a file (--data.path). Validation and test episodes start from seeds of their
own, the same for every run.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from descend.contracts import Batch, Chance, Stream
from descend.data.control.arm_camera import Camera, fixed_camera
from descend.data.control.arm_world import ArmWorld, Scene
from descend.data.control.demonstrations import (
    Pictures,
    Recorded,
    WithPictures,
    read_demonstrations,
    record,
)
from descend.data.control.detour import DetourWorld
from descend.data.control.environments import TEST, TRAIN, VALID, Episodes, episode_seed
from descend.data.control.episodes import AverageChunks, RunChunks, Senses, play
from descend.data.control.instructions import LONGEST, WORDS
from descend.data.streams.arrays import InOrder, Shuffled
from descend.data.streams.beside import Beside, BesideOnce
from descend.data.streams.shards import process
from descend.engine.parts import Parts
from descend.errors import Mistake
from descend.kinds.recipe import Recipe, describe_batch, fit_batch, micro_batch
from descend.losses.regression import absolute_error, squared_error
from descend.models import config_class, make_model
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine
from descend.ranges import Count, NonNegative, SideOrAny, Whole
from descend.tasks.denoise import draw_noise
from descend.tasks.imitate import CloneBehaviour, CloneByDenoising, CloneByStyle, Imitation
from descend.text.word_table import encode_words
from descend.views.episodes import show_episodes_of

Task = Literal["pick-place", "sort", "detour"]
HELD = 10_000  # seeds of held-out demonstrations begin here
ERRORS = {"l1": absolute_error, "l2": squared_error}
TOLD = ("success", "named")  # what swaps are judged by


def make_world(task: Task, pace: int) -> ArmWorld:
    """pick-place: one cube, one bin; sort: two of each, in colours; detour: around a pillar."""
    if task == "detour":
        return DetourWorld(pace=1)
    return ArmWorld(1, 1, pace) if task == "pick-place" else ArmWorld(2, 2, pace)


@dataclass(frozen=True)
class Demonstrations:
    """What is demonstrated, how often, and what the policy sees of it."""

    path: str = ""
    """A file of demonstrations (safetensors); empty: scripted ones."""
    task: Task = "pick-place"
    """pick-place: one cube; sort: the named cube into the named bin; detour: around a pillar, on either side."""
    episodes: Count = 300
    """Scripted demonstrations; a tenth as many more are held out."""
    pace: Count = 2
    """Steps for each of the book's sixteen."""
    noise: NonNegative = 0.01
    """Radians by which the arm is pushed about while demonstrating."""
    height: SideOrAny = 0
    """Of camera images; 0: no camera, the state tells where things are."""
    width: SideOrAny = 0
    valid: Count = 50
    """Episodes of an evaluation during training."""
    test: Count = 200
    """Episodes of the final test."""

    @property
    def world(self) -> ArmWorld:
        return make_world(self.task, self.pace)

    @property
    def camera(self) -> Camera | None:
        if bool(self.height) != bool(self.width):
            raise Mistake(f"--data.height {self.height} and --data.width {self.width}: give both, or neither")
        return fixed_camera(self.height, self.width) if self.height else None

    def senses(self) -> Senses:
        """What a policy is given when it acts."""
        camera = self.camera
        encode = (lambda texts: encode_words(texts, WORDS, LONGEST)) if camera else None
        return Senses(self.world, camera, encode)

    def read(self) -> tuple[Recorded, Recorded]:
        """Demonstrations to learn from, and held-out ones."""
        if self.path:
            return self.read_file(Path(self.path))
        held = max(1, self.episodes // 10)
        seeds = [episode_seed(TRAIN, HELD, i) for i in range(self.episodes + held)]
        recorded = record(self.world, seeds, self.noise, self.camera)
        return recorded.part(0, self.episodes), recorded.part(self.episodes, self.episodes + held)

    def read_file(self, path: Path) -> tuple[Recorded, Recorded]:
        recorded, header = read_demonstrations(path)
        if header.get("task", self.task) != self.task:
            raise Mistake(f"{path}: demonstrations of {header['task']!r}; give --data.task {header['task']}")
        held = max(1, len(recorded) // 10)
        if len(recorded) < 2:
            raise Mistake(f"{path}: {len(recorded)} demonstrations; at least 2 are needed, one of them to be held out")
        seen = self.world.seen if self.camera is None else 7
        if recorded.state.shape[-1] != seen or recorded.command.shape[-1] != 7:
            raise Mistake(
                f"{path}: states of {recorded.state.shape[-1]} and commands of {recorded.command.shape[-1]} numbers; "
                f"the task {self.task} has {seen} and 7"
            )
        if self.camera is not None:
            if recorded.image is None or recorded.tokens is None:
                raise Mistake(f"{path}: it has no images and instructions; leave out --data.height and --data.width")
            if recorded.image.shape[-2:] != (self.height, self.width):
                size = "×".join(map(str, recorded.image.shape[-2:]))
                raise Mistake(
                    f"{path}: its images are {size}, not --data.height {self.height} --data.width {self.width}"
                )
        return recorded.part(0, len(recorded) - held), recorded.part(len(recorded) - held, len(recorded))


@dataclass(frozen=True)
class ImitateDemonstrations(Recipe):
    """An arm that learns from demonstrations."""

    model: Any = field(default_factory=lambda: config_class("cloning_policy")())
    data: Demonstrations = field(default_factory=Demonstrations)
    optim: Any = field(default_factory=AdamW)
    schedule: Any = field(default_factory=Cosine)
    execute: Any = field(default_factory=RunChunks)
    package: ClassVar[str] = "gymnasium"

    def assemble(self, model: Any) -> Imitation:
        """What is learned."""
        raise NotImplementedError

    def draw(self, random: torch.Generator, n: int) -> dict[str, Tensor]:
        """Random numbers of n examples."""
        return {}

    @property
    def needs_chance(self) -> bool:
        """Whether an example comes with random numbers."""
        return bool(self.draw(torch.Generator(), 1))

    def build(self) -> Parts:
        loop, train, held = self.loop, *self.data.read()
        rows = train.rows(self.model.chunk)
        batch = fit_batch(loop, len(rows["state"]))
        torch.manual_seed(loop.seed)
        model = build_policy(self.model, train, self.data)
        model.fit_scales(rows["state"], rows["chunk"])
        stream: Stream = Shuffled(rows, micro_batch(loop, batch), loop.seed, *process())
        if self.data.camera is not None:
            stream = WithPictures(stream, Pictures(train))
        if self.needs_chance:
            stream = Beside(stream, self.draw, loop.seed, *process())
        held_out = InOrder(held.rows(self.model.chunk), 256)
        task = self.assemble(model)
        return Parts(
            task=task,
            model=model,
            stream=stream,
            valid=HeldOut(
                Episodes(VALID, self.data.valid),
                BesideOnce(held_out, self.draw) if self.needs_chance else held_out,
                None if self.data.camera is None else Pictures(held),
            ),
            optims={"model": self.optim},
            unit="chunks",
            units_per_batch=batch,
            facts={
                "task": self.data.task,
                "demonstrations": f"{len(train)} of {train.steps} steps, {len(held)} held out",
                "data": self.data.path or "scripted",
                "seen": "places of things"
                if self.data.camera is None
                else f"{self.data.height}×{self.data.width} pixels",
                "chunk": f"{self.model.chunk} actions of {train.command.shape[-1]} numbers",
                **describe_batch(loop, batch),
            },
            exhibits=lambda: show_episodes_of(task.plan, self.data.senses(), self.execute),
        )

    def player(self) -> Callable[[Callable[[Batch, Chance], Tensor], Sequence[int]], dict[str, Tensor]]:
        """Plays episodes by their seeds."""
        senses, execute = self.data.senses(), self.execute

        def judge(plan: Callable[[Batch, Chance], Tensor], seeds: Sequence[int]) -> dict[str, Tensor]:
            return play(plan, senses, senses.world.reset(seeds), seeds, execute).scores

        return judge

    def test(self) -> Iterable[Batch]:
        """The episodes of the final test."""
        return Episodes(TEST, self.data.test)


class HeldOut:
    """Episodes to play, then the chunks of demonstrations that were not learned from."""

    def __init__(self, episodes: Iterable[Batch], rows: Iterable[Batch], pictures: Pictures | None):
        self.episodes, self.rows, self.pictures = episodes, rows, pictures

    def __iter__(self) -> Iterator[Batch]:
        yield from self.episodes
        for batch in self.rows:
            yield batch if self.pictures is None else {**batch, "image": self.pictures.take(batch["row"])}


def build_policy(config: Any, recorded: Recorded, data: Demonstrations) -> Any:
    """The policy of a config, with the sizes that follow from the data."""
    sizes: dict[str, Any] = {"state": recorded.state.shape[-1], "actions": recorded.command.shape[-1]}
    named = {f.name for f in dataclasses.fields(config)}
    if "image" in named:
        sizes["image"] = (data.height, data.width) if data.camera is not None else ()
    elif data.camera is not None:
        raise Mistake(f"--data.height {data.height}: {type(config).__name__} has no camera; leave it out")
    if "words" in named:
        if data.camera is None:
            raise Mistake("--data.height 0: this policy sees; give --data.height and --data.width")
        sizes |= {"words": WORDS, "longest": LONGEST}
    try:
        return make_model(dataclasses.replace(config, **sizes))
    except ValueError as error:
        raise Mistake(f"--model: {error}") from None


@dataclass(frozen=True)
class RegressActions(ImitateDemonstrations):
    """Behaviour cloning by regression."""

    loss: Literal["l1", "l2"] = "l1"
    """l1: the median of what was demonstrated; l2: the mean."""

    def assemble(self, model: Any) -> Imitation:
        return CloneBehaviour(model, self.player(), ERRORS[self.loss])


@dataclass(frozen=True)
class ImitateByStyle(ImitateDemonstrations):
    """ACT: chunks with a latent style."""

    model: Any = field(default_factory=lambda: config_class("act")())
    execute: Any = field(default_factory=AverageChunks)
    beta: NonNegative = 10.0
    """Weight of the KL divergence of the style."""

    def assemble(self, model: Any) -> Imitation:
        return CloneByStyle(model, self.player(), self.beta)

    def draw(self, random: torch.Generator, n: int) -> dict[str, Tensor]:
        return {"noise": torch.randn(n, self.model.latent, generator=random)}


@dataclass(frozen=True)
class DiffuseActions(ImitateDemonstrations):
    """Diffusion Policy."""

    model: Any = field(default_factory=lambda: config_class("diffusion_policy")())

    def assemble(self, model: Any) -> Imitation:
        return CloneByDenoising(model, self.player(), model.config.plan)

    def draw(self, random: torch.Generator, n: int) -> dict[str, Tensor]:
        return draw_noise((self.model.chunk, self.model.actions), n, random)


@dataclass(frozen=True)
class FollowInstructions(RegressActions):
    """A policy that sees and is told what to do. Every episode is played three times: as it is, with the other cube's
    colour in the instruction, and with the colours of the cubes swapped."""

    model: Any = field(default_factory=lambda: config_class("vla_policy")())
    data: Demonstrations = field(default_factory=lambda: Demonstrations(task="sort", height=48, width=64))
    swaps: Whole = 50
    """Episodes that are also played with swapped words and swapped colours; 0: none."""

    def player(self) -> Callable[[Callable[[Batch, Chance], Tensor], Sequence[int]], dict[str, Tensor]]:
        senses, execute = self.data.senses(), self.execute

        def judge(plan: Callable[[Batch, Chance], Tensor], seeds: Sequence[int]) -> dict[str, Tensor]:
            scene = senses.world.reset(seeds)
            found = play(plan, senses, scene, seeds, execute).scores
            few = seeds[: self.swaps]
            if not few:
                return found
            start = senses.world.reset(few)
            for name, other in {"words_swap": swap_words(start), "colours_swap": swap_colours(start)}.items():
                found[name] = play(plan, senses, other, few, execute).scores["named"]
            return found

        return judge


def swap_words(scene: Scene) -> Scene:
    """The other cube is meant, and so the instruction names it."""
    return scene.changed(target=1 - scene.target)


def swap_colours(scene: Scene) -> Scene:
    """The two cubes have each other's colour: the same words mean the one at the other place."""
    return scene.changed(paint=scene.paint.flip(1), target=1 - scene.target)
