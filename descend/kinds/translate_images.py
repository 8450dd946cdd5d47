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
from descend.data.images.two_folders import read_pairs, read_two_folders
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
    """Scenes of one object in two domains, or images of one's own."""

    path: str = ""
    """Folder with source/ and target/ full of images, of the same names where they are pairs; empty: scenes."""
    source: Source = "recolour"
    """labels: flat label images become scenes; recolour: scenes change the colour of their object."""
    side: Side = 16
    count: Count = 2000
    """Training scenes (of each domain)."""
    valid: Count = 200
    test: Count = 500

    def draw(self, seed: int, n: int) -> Translations:
        return draw_translations(n, self.side, seed, self.source)

    def read(self, part: int, paired: bool) -> dict[str, Tensor]:
        """x (n, 3, s, s) and y of a part; of scenes also the object's place and true colour."""
        if self.path:
            files = (read_pairs if paired else read_two_folders)(self.path)
            shortest = min(len(files.source), len(files.target))
            held = max(1, shortest // 10)
            ends = {TRAIN: (0, shortest - 2 * held), VALID: (shortest - 2 * held, shortest - held)}
            x, y = files.pixels(self.side, *ends.get(part, (shortest - held, shortest)))
            return {"x": x, "y": y}
        found = self.draw(part, {TRAIN: self.count, VALID: self.valid}.get(part, self.test))
        if part == TRAIN:
            return {"x": found.x, "y": found.y if paired else self.draw(OTHER, self.count).y}
        return {"x": found.x, "y": found.y, "mask": found.mask, "colour": found.colour}


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
        train = self.data.read(TRAIN, paired=True)
        torch.manual_seed(loop.seed)
        try:
            config = replace(self.model, channels=3, outputs=3)
            g, file = make_model(config), file_of(config)
            d = self.game.dress(file.make_discriminator(config, self.patches))
            with torch.no_grad():
                d.eval()(g.eval()(train["x"][:2]), train["x"][:2])
        except (ValueError, RuntimeError) as error:
            raise Mistake(f"--model or --patches for images of {self.data.side}×{self.data.side}: {error}") from None
        arrays = {"x": train["y"], "source": train["x"], "u": torch.rand(len(train["x"]))}
        stream = Shuffled(arrays, micro_batch(loop, loop.batch), loop.seed, *process())
        return Parts(
            task=TranslatePairs(g, d, judge_colour, rules, self.l1),
            model=g,
            stream=stream,
            valid=self.held_out(VALID),
            optims={"d": self.optim.d, "g": self.optim.g},
            unit="images",
            units_per_batch=loop.batch,
            facts=describe(self.data, len(train["x"]), self.patches.field.size),
            save_extra=prepare(self.data).save,
            exhibits=lambda: show_pairs(g, self.data),
        )

    def held_out(self, part: int) -> InOrder:
        """Images with their translations."""
        found = self.data.read(part, paired=True)
        return InOrder({**found, "x": found.pop("y"), "source": found.pop("x")}, batch=256)

    def test(self) -> Iterable[Batch]:
        """Images that selected nothing."""
        return self.held_out(TEST)


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
    r1: NonNegative = 0.0
    """Weight γ of the squared slope of the discriminators at real images; 0: none. It needs a norm other than batch."""

    def build(self) -> Parts:
        loop, data = self.loop, self.data
        if self.r1 and self.patches.norm == "batch":
            raise Mistake(
                "--r1 takes the slope of each example, and a batch norm mixes them; give --patches.norm instance"
            )
        train = data.read(TRAIN, paired=False)
        torch.manual_seed(loop.seed)
        try:
            config = replace(self.model, channels=3)
            g: Any = make_model(config)
            d = TwoWays(*(file_of(config).make_discriminator(config, self.patches) for _ in range(2)))
            with torch.no_grad():
                d.y(g.y(train["x"][:2]))
        except (ValueError, RuntimeError) as error:
            raise Mistake(f"--model or --patches for images of {data.side}×{data.side}: {error}") from None
        return Parts(
            task=TranslateUnpaired(g, d, judge_colour, LOSSES[self.loss], self.cycle, self.identity, self.r1),
            model=g,
            stream=Shuffled(train, micro_batch(loop, loop.batch), loop.seed, *process()),
            valid=self.held_out(VALID),
            optims={"d": self.optim.d, "g": self.optim.g},
            unit="images",
            units_per_batch=loop.batch,
            facts=describe(data, len(train["x"]), self.patches.field.size),
            save_extra=prepare(data).save,
            exhibits=lambda: show_ways(g, data),
        )

    def held_out(self, part: int) -> InOrder:
        """Images of X; of scenes also what they should become, for the judge alone."""
        return InOrder(self.data.read(part, paired=False), batch=256)

    def test(self) -> Iterable[Batch]:
        """Images that selected nothing."""
        return self.held_out(TEST)


def file_of(config: Any) -> Any:
    """The model's file, which says who plays against it."""
    return sys.modules[type(config).__module__]


def judge_colour(made: Tensor, batch: Batch) -> dict[str, Tensor]:
    """Whether the object of a scene has its true colour; nothing is known of images of one's own."""
    if "mask" not in batch:
        return {}
    return {"recovered": (read_colour(made.float(), batch["mask"]) == batch["colour"]).float()}


def prepare(data: ScenePairs) -> Preprocessing:
    """Pixels in −1..1."""
    return Preprocessing((3, data.side, data.side), (0.5,) * 3, (0.5,) * 3)


def describe(data: ScenePairs, count: int, field_size: int) -> dict[str, Any]:
    return {
        "data": data.path or f"scenes, {data.source}",
        "training images": count,
        "image": f"3×{data.side}×{data.side}",
        "a score of the discriminator sees": f"{field_size}×{field_size} pixels",
    }


@torch.no_grad()
def show_pairs(g: Any, data: ScenePairs) -> list[Exhibit]:
    found, device = data.read(VALID, paired=True), next(g.parameters()).device
    x, y = (found[name][:SHOWN] for name in ("x", "y"))
    columns = {"source": x, "made": g(x.to(device)), "true": y}
    return [show_translations(columns, "Validation images.")]


@torch.no_grad()
def show_ways(g: Any, data: ScenePairs) -> list[Exhibit]:
    found, device = data.read(VALID, paired=False), next(g.parameters()).device
    x, y = (found[name][:SHOWN] for name in ("x", "y"))
    there = g.y(x.to(device))
    columns = {"X": x, "made Y": there, "back to X": g.x(there), "Y": y, "made X": g.x(y.to(device))}
    note = "Validation images; no pair was ever shown."
    return [show_translations(columns, note if data.path else f"{note} Y is what X should become.")]
