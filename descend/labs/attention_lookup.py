"""Attention against a fixed mixing of positions: weights from the content or from the place.

    text        n pairs (key_j, value_j) in any order, then a key: which value belongs to it?
    attention   a_j = softmax_j(q·k_j): from the content, for any n
    fixed       x'_i = Σ_j M_ij x_j with learned M (n × n): the same weights for every text, and for one n only

Both are followed by the same small network and trained the same way on 8 pairs. VOM 8.10: the fixed layer cannot take
another length at all; attention is tested on 16 pairs without having seen them.

Systems: attention-properties
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor, nn

from descend.labs._evidence import Above, AtLeast, Below
from descend.labs._train import train
from descend.losses.classification import cross_entropy
from descend.nn.attention.single_head import SingleHead
from descend.nn.mlp import MLP

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("VOM-A.92",)
PRINTED = (
    "A fully connected layer mixes positions by fixed weights for a fixed length; attention takes"
    " its weights from the content, at any length."
)
CLAIM = (
    "On a look-up by content, attention is right at the trained length and at twice that; a layer that mixes positions"
    " with fixed weights is not right at either, and cannot take the other length."
)
PREDICTIONS = (
    Above("attention", 0.9, "Accuracy of attention at the trained 8 pairs."),
    Above(
        "attention at twice",
        0.8,
        "Accuracy of attention at 16 pairs, which it has not seen; at the fixed layer's level it would"
        " refute the claim.",
    ),
    Below("fixed", 0.5, "Accuracy of the layer with fixed weights at 8 pairs."),
    AtLeast("fixed refuses", 1, "1 where the fixed layer cannot take 16 pairs at all."),
)
SCOPE = "24 keys, 8 values, 8 and 16 pairs; one layer of width 32."
KEYS, VALUES, PAIRS, WIDTH, BATCH, RATE = 24, 8, 8, 32, 64, 1e-2
BUDGET = 3.0
PRICE = 170  # steps of both models that a second of one core buys


class Reader(nn.Module):
    """keys (b, n + 1) and values (b, n) -> logits (b, values); the last key is the question."""

    def __init__(self, mixing: nn.Module):
        super().__init__()
        self.key, self.value = nn.Embedding(KEYS, WIDTH), nn.Embedding(VALUES, WIDTH)
        self.mixing = mixing
        self.mlp, self.out = MLP(WIDTH, 2 * WIDTH, nn.GELU()), nn.Linear(WIDTH, VALUES)

    def forward(self, keys: Tensor, values: Tensor) -> Tensor:
        x = self.key(keys)
        x = torch.cat([x[:, :-1] + self.value(values), x[:, -1:]], dim=1)
        x = x + self.mixing(x)
        return cast("Tensor", self.out(x + self.mlp(x))[:, -1])


class ByContent(nn.Module):
    """One attention head."""

    def __init__(self) -> None:
        super().__init__()
        self.head = SingleHead(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        return cast("Tensor", self.head(x)[0])


class ByPlace(nn.Module):
    """A matrix over the positions, then one over the features."""

    def __init__(self, length: int):
        super().__init__()
        self.places, self.features = nn.Linear(length, length), nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        return cast("Tensor", self.features(self.places(x.mT).mT))


def texts(n: int, pairs: int, random: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Keys (n, pairs + 1), all different but for the question, values (n, pairs), and the answers (n)."""
    keys = torch.rand(n, KEYS, generator=random).argsort(dim=1)[:, :pairs]
    values = torch.randint(VALUES, (n, pairs), generator=random)
    asked = torch.randint(pairs, (n, 1), generator=random)
    return torch.cat([keys, keys.gather(1, asked)], dim=1), values, values.gather(1, asked).squeeze(1)


def accuracy(model: Reader, pairs: int, seed: int) -> float | None:
    """None where the layer cannot take this many."""
    keys, values, y = texts(2000, pairs, torch.Generator().manual_seed(seed + 10_000))
    try:
        with torch.no_grad():
            return float((model(keys, values).argmax(-1) == y).double().mean())
    except RuntimeError as error:
        if "shapes cannot be multiplied" not in str(error):
            raise
        return None


def measure(seed: int, budget: float) -> dict[str, Any]:
    """Accuracy of both layers at 8 and at 16 pairs."""
    steps = max(10, round(PRICE * budget))
    found: dict[str, list[Any]] = {"layer": ["attention", "fixed"], "at_8": [], "at_16": []}
    for build in (ByContent, lambda: ByPlace(PAIRS + 1)):
        torch.manual_seed(seed)
        random = torch.Generator().manual_seed(seed)
        model = Reader(build())

        def loss(model: Reader = model, random: torch.Generator = random) -> Tensor:
            keys, values, y = texts(BATCH, PAIRS, random)
            return cross_entropy(model(keys, values), y).mean()

        train(model, loss, steps, RATE)
        found["at_8"].append(accuracy(model, PAIRS, seed))
        found["at_16"].append(accuracy(model, 2 * PAIRS, seed))
    return {**found, "steps": steps, "chance": 1 / VALUES}


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    """Of one seed, by the names of the predictions."""
    (content, place), (longer, refused) = numbers["at_8"], numbers["at_16"]
    return {
        "attention": content,
        "attention at twice": math.nan if longer is None else longer,
        "fixed": place,
        "fixed refuses": float(refused is None),
    }


def needs(numbers: dict[str, Any]) -> float:
    """Seconds that a verdict takes, where the budget was too small for one."""
    return BUDGET if numbers["steps"] < 150 else 0.0


def figure(numbers: dict[str, Any]) -> Figure:
    """Bars for both layers at both lengths."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(6, 3.6), layout="constrained")
    axes = fig.subplots()
    for shift, name, color in ((-0.2, "at_8", "#2b6cd8"), (0.2, "at_16", "#d66820")):
        axes.bar([i + shift for i in range(2)], [v or 0 for v in numbers[name]], 0.38, color=color, label=name[3:])
    axes.axhline(numbers["chance"], color="0.4", ls=":", label="chance")
    axes.set_xticks(range(2), numbers["layer"])
    axes.set_ylim(0, 1.05)
    axes.set_title("accuracy, by number of pairs", fontsize=11, loc="left", fontweight="bold")
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    return fig
