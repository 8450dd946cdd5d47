"""Two-player recipes on images: DCGAN, conditional GAN, StyleGAN, and networks that grow while they train.

A model's file says what its generator reads (`INPUTS`), what both players are told (`GIVEN`), how random numbers are
drawn for it (`draw_inputs`), and who plays against it (`make_discriminator`).
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from descend.data.images.labelled import Preprocessing
from descend.data.streams.ramp import Ramp
from descend.data.streams.shards import process
from descend.engine.parts import Parts
from descend.errors import Mistake
from descend.kinds.game import Game, Players
from descend.kinds.generate_images import GenerateImages, Learner
from descend.kinds.image_judge import ImageJudge
from descend.models import config_class, make_model
from descend.optim.schedules import Linear
from descend.ranges import Count
from descend.tasks.adversarial import Adversarial
from descend.tasks.growing import GrowAdversarial


@dataclass(frozen=True)
class AdversarialImages(GenerateImages):
    """A generator of images that learns against a discriminator."""

    model: Any = field(default_factory=lambda: config_class("dcgan")())
    optim: Players = field(default_factory=Players)
    schedule: Any = field(default_factory=Linear)
    game: Game = field(default_factory=Game)

    def assemble(self, prepare: Preprocessing) -> Learner:
        config, rules = fit_config(self.model, prepare.image, len(prepare.labels)), self.game.rules(self.loop)
        file: Any = sys.modules[type(config).__module__]
        if self.game.minibatch:
            raise Mistake("--game.minibatch is for points; leave this flag out, or watch 'max classes'")
        if file.GIVEN and len(prepare.labels) < 2:
            raise Mistake("--data.path has no classes to ask for; put the images of each class in a folder of its own")
        g = make_model(config)
        d = self.game.dress(file.make_discriminator(config))
        judge = ImageJudge(self.data.read_unlabelled, prepare) if self.data.path else judge_embedded(self.data, prepare)
        task = self.make_task(g, d, judge, rules, file)
        return Learner(task, g, {"d": self.optim.d, "g": self.optim.g})

    def make_task(self, g: Any, d: Any, judge: ImageJudge, rules: Any, file: Any) -> Adversarial:
        return Adversarial(g, d, judge, rules, file.INPUTS, file.GIVEN)

    def draw(self, random: torch.Generator, n: int, image: tuple[int, int, int]) -> dict[str, Tensor]:
        """What the generator starts from, and a place between real and generated images for a penalty."""
        config = fit_config(self.model, image, 2)
        file: Any = sys.modules[type(config).__module__]
        return {**file.draw_inputs(config, random, n), "u": torch.rand(n, generator=random)}


@lru_cache(maxsize=4)
def judge_embedded(data: Any, prepare: Preprocessing) -> ImageJudge:
    """The judge of data that never change: trained once for all runs of a process."""
    return ImageJudge(data.read_unlabelled, prepare)


def fit_config(config: Any, image: tuple[int, int, int], classes: int) -> Any:
    """The config for images of this size and so many classes."""
    channels, height, width = image
    known = vars(config)
    if "side" in known and height != width:
        raise Mistake(f"the images are {height}×{width}, but this model makes squares; give --data.size {height}")
    sizes = {"channels": channels, "side": height, "shape": image, "classes": max(classes, 1)}
    try:
        return replace(config, **{name: value for name, value in sizes.items() if name in known})
    except ValueError as error:
        raise Mistake(f"--model: {error}, or give --data.size {2 ** round(math.log2(height))}") from None


@dataclass(frozen=True)
class GrowthPlan:
    """When the players grow."""

    stay: Count = 400
    """Steps that a complete stage trains before the next one begins."""
    fade: Count = 400
    """Steps over which a new stage is faded in."""

    def at(self, step: Tensor, stages: int) -> Tensor:
        """k + α at each of these steps."""
        whole = torch.div(step, self.stay + self.fade, rounding_mode="floor")
        part = ((step % (self.stay + self.fade) - self.stay) / self.fade).clamp(min=0)
        return (whole + part).clamp(max=stages - 1)


@dataclass(frozen=True)
class GrowImages(AdversarialImages):
    """A generator and a discriminator that begin with images of 4×4 and grow."""

    model: Any = field(default_factory=lambda: config_class("progressive_gan")())
    growing: GrowthPlan = field(default_factory=GrowthPlan)

    def build(self) -> Parts:
        rank, world = process()
        if world > 1:
            raise Mistake("layers to come take no gradient, for which several processes would wait; start one process")
        parts = super().build()
        stages = parts.model.config.stages
        needed = (stages - 1) * (self.growing.stay + self.growing.fade)
        if needed >= self.loop.steps:
            raise Mistake(
                f"--steps {self.loop.steps}: growing to the full side takes {needed:,} (--growing.stay, --growing.fade)"
            )

        def value(number: Tensor) -> Tensor:
            return self.growing.at(torch.div(number, parts.units_per_batch, rounding_mode="floor"), stages)

        parts.stream = Ramp(parts.stream, "growth", value, rank, world)
        return parts

    def make_task(self, g: Any, d: Any, judge: ImageJudge, rules: Any, file: Any) -> Adversarial:
        return GrowAdversarial(g, d, judge, rules, file.INPUTS, file.GIVEN)
