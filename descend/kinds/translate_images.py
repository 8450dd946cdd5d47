"""Image-to-image recipes: with pairs (pix2pix) and without (CycleGAN), on scenes whose true translation is known.

recovered   share of images in which the object has the colour that it should have
l1          distance to the true image (pairs);   cycle   distance after going there and back (unpaired)
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import torch
from torch import Tensor

from descend.contracts import Batch, Exhibit
from descend.data.images.labelled import Preprocessing
from descend.data.streams.arrays import InOrder, Shuffled
from descend.data.streams.shards import process
from descend.data.toys.recoloured import Source, Translations, draw_translations, read_colour
from descend.engine.parts import Parts
from descend.errors import Mistake
from descend.kinds.game import LOSSES, Game, Players
from descend.kinds.recipe import Recipe, micro_batch
from descend.models import config_class, make_model
from descend.optim.schedules import Linear
from descend.ranges import Count, NonNegative, Side
from descend.tasks.translation import TranslatePairs, TranslateUnpaired, TwoWays
from descend.views.translation import show_translations

TRAIN, VALID, TEST, OTHER = 10, 11, 12, 13  # seeds of the scenes
SHOWN = 6


@dataclass(frozen=True)
class ScenePairs:
    """Scenes of one object in two domains."""

    source: Source = "recolour"
    """labels: flat label images become scenes; recolour: scenes change the colour of their object."""
    side: Side = 16
    count: Count = 2000
    """Training scenes (of each domain)."""
    valid: Count = 200
    test: Count = 500

    def draw(self, seed: int, n: int) -> Translations:
        return draw_translations(n, self.side, seed, self.source)


@dataclass(frozen=True)
class TranslateScenes(Recipe):
    """pix2pix: every training image comes with its translation."""

    model: Any = field(default_factory=lambda: config_class("pix2pix")())
    patches: Any = field(default_factory=lambda: config_class("patchgan")())
    """The discriminator: its width, and how many pixels a score sees."""
    data: ScenePairs = field(default_factory=ScenePairs)
    optim: Players = field(default_factory=Players)
    schedule: Any = field(default_factory=Linear)
    game: Game = field(default_factory=Game)
    l1: NonNegative = 100.0
    """Weight λ of the distance to the true image."""

    def build(self) -> Parts:
        loop = self.loop
        rules = self.game.rules(loop)
        train = self.data.draw(TRAIN, self.data.count)
        torch.manual_seed(loop.seed)
        try:
            config = replace(self.model, channels=3, outputs=3)
            g, file = make_model(config), file_of(config)
            d = self.game.dress(file.make_discriminator(config, self.patches))
            with torch.no_grad():
                d.eval()(g.eval()(train.x[:2]), train.x[:2])
        except (ValueError, RuntimeError) as error:
            raise Mistake(f"--model or --patches for images of {self.data.side}×{self.data.side}: {error}") from None
        arrays = {"x": train.y, "source": train.x, "u": torch.rand(len(train.x))}
        stream = Shuffled(arrays, micro_batch(loop, loop.batch), loop.seed, *process())
        return Parts(
            task=TranslatePairs(g, d, judge_colour, rules, self.l1),
            model=g,
            stream=stream,
            valid=self.held_out(VALID, self.data.valid),
            optims={"d": self.optim.d, "g": self.optim.g},
            unit="images",
            units_per_batch=loop.batch,
            facts=describe(self.data, self.patches.field.size),
            save_extra=prepare(self.data).save,
            exhibits=lambda: show_pairs(g, self.data),
        )

    def held_out(self, seed: int, n: int) -> InOrder:
        """Scenes with their translations."""
        found = self.data.draw(seed, n)
        return InOrder({"x": found.y, "source": found.x, "mask": found.mask, "colour": found.colour}, batch=256)

    def test(self) -> Iterable[Batch]:
        """Scenes that selected nothing."""
        return self.held_out(TEST, self.data.test)


@dataclass(frozen=True)
class TranslateSceneDomains(Recipe):
    """CycleGAN: scenes of both domains, and no pairs."""

    model: Any = field(default_factory=lambda: config_class("cyclegan")())
    patches: Any = field(default_factory=lambda: config_class("patchgan")())
    """The discriminator: its width, and how many pixels a score sees."""
    data: ScenePairs = field(default_factory=ScenePairs)
    optim: Players = field(default_factory=Players)
    schedule: Any = field(default_factory=Linear)
    loss: Literal["least-squares", "non-saturating", "hinge"] = "least-squares"
    cycle: NonNegative = 10.0
    """Weight λ of the distance after going there and back."""
    identity: NonNegative = 0.0
    """Weight of the distance between an image of the domain that is made, and what is made of it."""

    def build(self) -> Parts:
        loop, data = self.loop, self.data
        x, y = data.draw(TRAIN, data.count).x, data.draw(OTHER, data.count).y
        torch.manual_seed(loop.seed)
        try:
            config = replace(self.model, channels=3)
            g: Any = make_model(config)
            d = TwoWays(*(file_of(config).make_discriminator(config, self.patches) for _ in range(2)))
            with torch.no_grad():
                d.y(g.y(x[:2]))
        except (ValueError, RuntimeError) as error:
            raise Mistake(f"--model or --patches for images of {data.side}×{data.side}: {error}") from None
        return Parts(
            task=TranslateUnpaired(g, d, judge_colour, LOSSES[self.loss], self.cycle, self.identity),
            model=g,
            stream=Shuffled({"x": x, "y": y}, micro_batch(loop, loop.batch), loop.seed, *process()),
            valid=self.held_out(VALID, data.valid),
            optims={"d": self.optim.d, "g": self.optim.g},
            unit="images",
            units_per_batch=loop.batch,
            facts=describe(data, self.patches.field.size),
            save_extra=prepare(data).save,
            exhibits=lambda: show_ways(g, data),
        )

    def held_out(self, seed: int, n: int) -> InOrder:
        """Scenes of X, with what they should become, for the judge alone."""
        found = self.data.draw(seed, n)
        return InOrder({"x": found.x, "y": found.y, "mask": found.mask, "colour": found.colour}, batch=256)

    def test(self) -> Iterable[Batch]:
        """Scenes that selected nothing."""
        return self.held_out(TEST, self.data.test)


def file_of(config: Any) -> Any:
    """The model's file, which says who plays against it."""
    return sys.modules[type(config).__module__]


def judge_colour(made: Tensor, batch: Batch) -> dict[str, Tensor]:
    """Whether the object has its true colour."""
    return {"recovered": (read_colour(made.float(), batch["mask"]) == batch["colour"]).float()}


def prepare(data: ScenePairs) -> Preprocessing:
    """Pixels in −1..1."""
    return Preprocessing((3, data.side, data.side), (0.5,) * 3, (0.5,) * 3)


def describe(data: ScenePairs, field_size: int) -> dict[str, Any]:
    return {
        "data": f"scenes, {data.source}",
        "training images": data.count,
        "image": f"3×{data.side}×{data.side}",
        "a score of the discriminator sees": f"{field_size}×{field_size} pixels",
    }


@torch.no_grad()
def show_pairs(g: Any, data: ScenePairs) -> list[Exhibit]:
    found, device = data.draw(VALID, SHOWN), next(g.parameters()).device
    columns = {"source": found.x, "made": g(found.x.to(device)), "true": found.y}
    return [show_translations(columns, "Validation scenes.")]


@torch.no_grad()
def show_ways(g: Any, data: ScenePairs) -> list[Exhibit]:
    found, device = data.draw(VALID, SHOWN), next(g.parameters()).device
    there = g.y(found.x.to(device))
    columns = {"X": found.x, "made Y": there, "true Y": found.y, "back to X": g.x(there)}
    columns |= {"Y": found.y, "made X": g.x(found.y.to(device))}
    return [show_translations(columns, "Validation scenes; no pair was ever shown.")]
