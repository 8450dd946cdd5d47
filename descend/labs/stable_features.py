"""Embed, then pool: features that stay when the input moves, and classes that become separable by a line.

    images 12 × 12 with noise: a short bar, upright or lying (the class), anywhere, also across the edge
    pixels            a linear classifier; where the bar is decides every pixel, so it is near chance
    embedded          detectors (patches of the data) at every place, not pooled: still tied to the place
    embed then pool   the strongest answer of each detector over the image

    change = ‖f(moved by one pixel) − f‖ / ‖f(another image) − f‖        (0: does not see the move)

Systems: embed-then-pool
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from descend.labs._evidence import Above, AtLeast, Below
from descend.metrics.probe import probe_accuracy
from descend.nn.embed_pool import EmbedThenPool
from descend.seeds import generator

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("DLN-A.25",)
PRINTED = "Embed non-linearly into a higher dimension, then pool regions of it: stable features are kept."
CLAIM = "Embedding and then pooling gives features that change less when the input moves, and that a line separates."
PREDICTIONS = (
    AtLeast("pooled", 0.95, "Accuracy of a linear classifier on pooled features."),
    Above("lead over pixels", 0.2, "The same less that on pixels."),
    Below(
        "change",
        2 / 3,
        "What a move by a pixel changes of pooled features, over what it changes of pixels.",
    ),
)
SCOPE = "Bars in images of 12×12, detectors taken from the data."
SIDE, LONG, DETECTORS, SIZE, NOISE, LEAST = 12, 5, 24, 5, 0.1, 400
BUDGET = 2.0
PRICE = 1000  # images that a second of one core buys


def draw_bars(n: int, random: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Images (n, 1, 12, 12), the same moved by one pixel, and the class (n): 0 upright, 1 lying."""
    y = torch.randint(2, (n,), generator=random)
    place = torch.randint(SIDE, (n, 2), generator=random)
    line = torch.arange(SIDE)

    def paint(place: Tensor) -> Tensor:
        along = (line - place[:, :1]) % SIDE < LONG
        across = (line - place[:, 1:]) % SIDE == 0
        upright = along[:, :, None] & across[:, None]
        return torch.where(y[:, None, None].bool(), upright.mT, upright).float()[:, None]

    noise = NOISE * torch.randn(n, 1, SIDE, SIDE, generator=random)
    return paint(place) + noise, paint(place + 1) + noise, y


def relative_change(features: Tensor, moved: Tensor) -> float:
    """How far a move carries the features, as a share of the distance to another image."""
    return float((moved - features).norm(dim=1).mean() / (features.roll(1, 0) - features).norm(dim=1).mean())


@torch.no_grad()
def measure(seed: int, budget: float) -> dict[str, Any]:
    """Accuracy of a linear classifier and change under a move, of the three."""
    images = max(40, round(PRICE * budget))
    random = generator(seed, 1)
    x, moved, y = draw_bars(images, random)
    model = EmbedThenPool.with_patches(x[:200], DETECTORS, SIZE, 1, random)
    ways: dict[str, Callable[[Tensor], Tensor]]
    ways = {"pixels": lambda x: x.flatten(1), "embedded": lambda x: model.embedding(x).flatten(1), "pooled": model}
    return {
        "features": list(ways),
        "accuracy": [probe_accuracy(f(x), y) for f in ways.values()],
        "change": [relative_change(f(x), f(moved)) for f in ways.values()],
        "numbers": [f(x[:1]).shape[1] for f in ways.values()],
        "images": images,
    }


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    """Of one seed, by the names of the predictions."""
    pixels, _, pooled = numbers["accuracy"]
    change = numbers["change"]
    return {"pooled": pooled, "lead over pixels": pooled - pixels, "change": change[2] / change[0]}


def needs(numbers: dict[str, Any]) -> float:
    """Seconds that a verdict takes, where the budget was too small for one."""
    return BUDGET if numbers["images"] < LEAST else 0.0


def figure(numbers: dict[str, Any]) -> Figure:
    """Accuracy and change of the three."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(6, 3.2), layout="constrained")
    for axes, name in zip(fig.subplots(1, 2), ("accuracy", "change"), strict=True):
        axes.bar(numbers["features"], numbers[name])
        axes.set_title(name, fontsize=10)
    return fig
