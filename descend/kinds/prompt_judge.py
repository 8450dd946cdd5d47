"""Do images show what their prompt says? Judged by a network that reads the shape and the colour of generated scenes.

    right         share of the images with both the shape and the colour of their prompt, of pairs that training shows
    right_new     the same, of pairs that training never shows together
    shape, colour the share that has each of the two, of pairs that training shows
    reader        share of real scenes, new to it, that the reader reads rightly: what perfect images could reach

The reader learns from scenes of every shape in every colour, with exact truth, from seeds of its own, when it is first
asked; it is no part of the run and never sees what the run makes before it judges it. The prompts belong to test: an
example says which pair is `asked` of the model beside it, so that validation makes no images.

Systems: text-to-image-pipeline
"""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from descend.contracts import Wish
from descend.data.images.captions import RADIUS, TILT, combinations, thing
from descend.data.toys.scenes import COLOURS, SHAPES, Scenes, one_object
from descend.engine.minimise import minimise
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine
from descend.sampling.chance import PerExample
from descend.seeds import generator

EVERY = [(shape, colour) for shape in SHAPES for colour in COLOURS]
LEARNED, APART = 1, 2  # keys of the scenes that the reader learns from, and of those that it is judged by
STEPS, BATCH, RATE, SCENES = 900, 64, 3e-3, 12_000
REAL, EACH, AT_ONCE = 1000, 8, 64  # real scenes; images of each pair; images made at a time


class SceneReader(nn.Module):
    """images (b, 3, s, s) in 0..1 -> logits of the shape (b, 6) and of the colour (b, 8)"""

    def __init__(self, maps: int = 24):
        super().__init__()
        sizes = ((3, maps, 2), (maps, 2 * maps, 2), (2 * maps, 2 * maps, 1), (2 * maps, 4 * maps, 2))
        parts = [[nn.Conv2d(n, m, 3, by, 1), nn.BatchNorm2d(m), nn.ReLU()] for n, m, by in sizes]
        self.body = nn.Sequential(*[layer for part in parts for layer in part], nn.AdaptiveAvgPool2d(2), nn.Flatten())
        self.shape, self.colour = (nn.Linear(16 * maps, n) for n in (len(SHAPES), len(COLOURS)))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        h = self.body(x - 0.5)
        return self.shape(h), self.colour(h)

    @torch.no_grad()
    def read(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The numbers of the shape and of the colour (b) that it sees."""
        shape, colour = self(x)
        return shape.argmax(1), colour.argmax(1)


@cache
def train_reader(side: int, steps: int = STEPS) -> SceneReader:
    """On scenes of one object, of every shape in every colour: the same every time."""
    scenes = draw_pairs(min(steps * BATCH, SCENES), side, LEARNED)
    with torch.random.fork_rng(devices=[]), torch.enable_grad():
        torch.manual_seed(0)
        model, random = SceneReader(), generator(0)

        def loss() -> Tensor:
            rows = torch.randint(len(scenes), (BATCH,), generator=random)
            shape, colour = model(scenes.x[rows])
            return cross_entropy(shape, scenes.shape[rows, 0]) + cross_entropy(colour, scenes.colour[rows, 0])

        minimise(model, loss, steps, AdamW(RATE), Cosine(warmup=steps // 10), clip=1.0)
    return model.eval()


def draw_pairs(n: int, side: int, key: int) -> Scenes:
    """n scenes as captions describe them, of any pair of shape and colour."""
    return one_object(n, side, generator(91, key), EVERY, RADIUS, TILT)


def rate_reader(model: SceneReader, side: int) -> float:
    """Share of new scenes whose shape and colour it reads rightly."""
    scenes = draw_pairs(REAL, side, APART)
    shape, colour = model.read(scenes.x)
    return float(((shape == scenes.shape[:, 0]) & (colour == scenes.colour[:, 0])).float().mean())


def ask_pairs(n: int) -> Tensor:
    """The pair that each of n examples asks for (n): each of them `EACH` times, in turn, and then no more (−1)."""
    number = torch.arange(n)
    return torch.where(number < EACH * len(EVERY), number % len(EVERY), -1)


def judge_prompts(model: Any, asked: Tensor, side: int) -> dict[str, float]:
    """The scores of a model that makes images of this side in −1..1, of the pairs that are asked for (n)."""
    asked = asked[asked >= 0]
    reader, made = train_reader(side), []
    for first, part in zip(range(0, len(asked), AT_ONCE), asked.split(AT_ONCE), strict=True):
        prompts = tuple(f"a picture of {thing(colour, shape)}" for shape, colour in (EVERY[i] for i in part.tolist()))
        chance = PerExample(0, len(part), first, next(model.parameters()).device)
        made.append(model.generate(chance, Wish(prompts=prompts)).float().cpu())
    shape, colour = reader.read(((torch.cat(made) + 1) / 2).clamp(0, 1))
    asked = asked.cpu()
    shapes, colours = shape == asked // len(COLOURS), colour == asked % len(COLOURS)
    apart = torch.tensor([pair in combinations()[1] for pair in EVERY])[asked]
    found = {"right": (shapes & colours)[~apart], "right_new": (shapes & colours)[apart]}
    found |= {"shape": shapes[~apart], "colour": colours[~apart]}
    scores = {name: float(hits.float().mean()) for name, hits in found.items() if len(hits)}
    return scores | {"reader": rate_reader(reader, side)}
