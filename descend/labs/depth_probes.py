"""What each depth of a network knows: linear probes on its layers, beside features made by hand.

    scenes of 16 × 16 pixels with one shape of six, in any colour, size and angle
    probe(f): least squares from features f to the shape, fitted on one half of held-out scenes, read on the other
    by hand       pixels, and histograms of gradient directions in 4 × 4 cells
    learned       the outputs of each convolution of a small network trained on other scenes, averaged to 3 × 3 places

The claim (DLN, DLD 10) is that features become more useful with depth, and better than those made by hand.

Systems: hierarchical-representations
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn.functional import adaptive_avg_pool2d, one_hot

from descend.data.images.captions import RADIUS
from descend.data.toys.scenes import COLOURS, SHAPES, one_object
from descend.interpret.layers import feature_maps
from descend.labs._evidence import Above, AtLeast
from descend.labs._train import train
from descend.losses.classification import cross_entropy
from descend.metrics.probe import probe_accuracy
from descend.seeds import generator

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("DLN-A.2",)
PRINTED = "A deep model learns low-level, then mid-level, then high-level features, instead of features made by hand."
CLAIM = "Linear probes read shapes better from deeper layers, and better from learned features than hand-made ones."
PREDICTIONS = (
    AtLeast("least rise", 0, "The smallest rise of the probe's accuracy from layer to layer."),
    Above("rise in all", 0.05, "The last layer's accuracy less the first's."),
    Above(
        "lead over hand-made",
        0.05,
        "The last layer's accuracy less that of pixels or histograms of gradients, whichever is better.",
    ),
)
SCOPE = "Shapes in scenes of 16×16 pixels, a network of three convolutions, linear probes."
SIDE, MAPS, BATCH, RATE, IMAGES, HELD_OUT, LEAST = 16, (8, 16, 32), 48, 1e-2, 3000, 1000, 150
PAIRS = [(shape, colour) for shape in SHAPES for colour in COLOURS]
BUDGET = 6.0
PRICE = 60  # training steps that a second of one core buys


class Network(nn.Module):
    """images (b, 3, 16, 16) -> logits (b, 6); layers c1, c2, c3 of convolution, norm and ReLU"""

    def __init__(self) -> None:
        super().__init__()
        one, two, three = MAPS
        self.c1, self.c2, self.c3 = block(3, one), block(one, two), block(two, three)
        self.pool, self.head = nn.MaxPool2d(2), nn.Linear(three * 4, len(SHAPES))

    def forward(self, x: Tensor) -> Tensor:
        h = self.c3(self.pool(self.c2(self.pool(self.c1(x)))))
        logits: Tensor = self.head(adaptive_avg_pool2d(h, 2).flatten(1))
        return logits


def block(n: int, m: int) -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(n, m, 3, padding=1), nn.BatchNorm2d(m), nn.ReLU())


def gradient_histograms(x: Tensor, cells: int = 4, bins: int = 8) -> Tensor:
    """Directions of grey gradients, weighed by their size, in cells × cells parts of each image: (n, cells² · bins)"""
    grey = x.mean(1)
    dy, dx = grey.diff(dim=1)[:, :, :-1], grey.diff(dim=2)[:, :-1]
    size, angle = (dx**2 + dy**2).sqrt(), torch.atan2(dy, dx)
    where = ((angle / (2 * math.pi) + 0.5) * bins).long().clamp(0, bins - 1)
    votes = one_hot(where, bins).movedim(-1, 1) * size[:, None]
    found = adaptive_avg_pool2d(votes, cells).flatten(1)
    return found / found.norm(dim=1, keepdim=True).clamp(min=1e-6)


def measure(seed: int, budget: float) -> dict[str, Any]:
    """Accuracy of the probes, in the order of the layers."""
    steps = max(3, round(PRICE * budget))
    random = generator(seed, 1)
    scenes = one_object(min(IMAGES, steps * BATCH) + HELD_OUT, SIDE, random, PAIRS, RADIUS)
    x, y = scenes.x - 0.5, scenes.shape[:, 0]
    held_out, truth = x[:HELD_OUT], y[:HELD_OUT]
    x, y = x[HELD_OUT:], y[HELD_OUT:]
    torch.manual_seed(seed)
    model = Network()

    def loss() -> Tensor:
        rows = torch.randint(len(y), (BATCH,), generator=random)
        return cross_entropy(model(x[rows]), y[rows]).mean()

    train(model, loss, steps, RATE)
    given = {"pixels": held_out.flatten(1), "gradients": gradient_histograms(held_out)}
    for layer in ("c1", "c2", "c3"):
        given[layer] = adaptive_avg_pool2d(feature_maps(model, layer, held_out), 3).flatten(1)
    return {
        "features": list(given),
        "accuracy": [probe_accuracy(f, truth) for f in given.values()],
        "numbers": [f.shape[1] for f in given.values()],
        "chance": 1 / len(SHAPES),
        "steps": steps,
    }


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    """Of one seed, by the names of the predictions."""
    pixels, gradients, *layers = numbers["accuracy"]
    return {
        "least rise": min(b - a for a, b in pairwise(layers)),
        "rise in all": layers[-1] - layers[0],
        "lead over hand-made": layers[-1] - max(pixels, gradients),
    }


def needs(numbers: dict[str, Any]) -> float:
    """Seconds that a verdict takes, where the budget was too small for one."""
    return BUDGET if numbers["steps"] < LEAST else 0.0


def figure(numbers: dict[str, Any]) -> Figure:
    """A bar for each kind of features."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(5.4, 3.4), layout="constrained")
    axes = fig.subplots()
    axes.bar(numbers["features"], numbers["accuracy"])
    axes.axhline(numbers["chance"], linestyle=":")
    axes.set_ylabel("accuracy of a linear probe")
    return fig
