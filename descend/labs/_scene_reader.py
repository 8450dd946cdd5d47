"""A judge of generated scenes: a small network that reads colour and shape, trained on scenes with exact truth.

share of samples whose colour and shape are those of the prompt; beside it the reader's accuracy on held-out scenes
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from descend.data.images.captions import RADIUS, TILT
from descend.data.toys.scenes import COLOURS, SHAPES, one_object
from descend.labs._train import train
from descend.losses.classification import cross_entropy
from descend.seeds import generator

EVERY = [(shape, colour) for shape in SHAPES for colour in COLOURS]


class SceneReader(nn.Module):
    """images (b, 3, s, s) in 0..1 -> logits of the shape (b, 6) and of the colour (b, 8)"""

    def __init__(self, maps: int = 24):
        super().__init__()
        sizes = ((3, maps), (maps, 2 * maps), (2 * maps, 4 * maps))
        parts = [[nn.Conv2d(n, m, 3, 2, 1), nn.BatchNorm2d(m), nn.ReLU()] for n, m in sizes]
        parts.insert(2, [nn.Conv2d(2 * maps, 2 * maps, 3, 1, 1), nn.BatchNorm2d(2 * maps), nn.ReLU()])
        self.body = nn.Sequential(*[layer for part in parts for layer in part], nn.AdaptiveAvgPool2d(2), nn.Flatten())
        self.shape, self.colour = (nn.Linear(16 * maps, n) for n in (len(SHAPES), len(COLOURS)))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        h = self.body(x - 0.5)
        return self.shape(h), self.colour(h)


def train_scene_reader(side: int, steps: int, seed: int, batch: int = 64) -> SceneReader:
    """On fresh scenes of one object, of every shape in every colour."""
    torch.manual_seed(seed)
    model, random = SceneReader(), generator(seed, 92)
    scenes = one_object(min(steps * batch, 12_000), side, generator(seed, 91), EVERY, RADIUS, TILT)

    def loss() -> Tensor:
        rows = torch.randint(len(scenes), (batch,), generator=random)
        shape, colour = model(scenes.x[rows])
        of_shape = cross_entropy(shape, scenes.shape[rows, 0]).mean()
        return of_shape + cross_entropy(colour, scenes.colour[rows, 0]).mean()

    train(model, loss, steps, 3e-3)
    return model.eval()


@torch.no_grad()
def read_scenes(model: SceneReader, x: Tensor) -> list[tuple[str, str]]:
    """(shape, colour) that the reader sees in each image."""
    shape, colour = model(x)
    found = zip(shape.argmax(1).tolist(), colour.argmax(1).tolist(), strict=True)
    return [(SHAPES[i], COLOURS[j]) for i, j in found]


def share_read(model: SceneReader, x: Tensor, wanted: Sequence[tuple[str, str]]) -> float:
    """Share of images in which the reader sees the (shape, colour) that was asked for."""
    found = read_scenes(model, x)
    return sum(a == b for a, b in zip(found, wanted, strict=True)) / len(found)


def reader_accuracy(model: SceneReader, side: int, count: int = 1000) -> float:
    """On scenes that it was not trained on."""
    scenes = one_object(count, side, generator(0, 93), EVERY, RADIUS, TILT)
    truth = zip(scenes.shape[:, 0].tolist(), scenes.colour[:, 0].tolist(), strict=True)
    return share_read(model, scenes.x, [(SHAPES[i], COLOURS[j]) for i, j in truth])
