"""Residual connections carry the positions through the stack.

    with       Y = norm(X + attention(X)),  X' = norm(Y + mlp(Y))
    without    Y = norm(attention(X)),      X' = norm(mlp(Y))

At random weights attention takes nearly equal shares of all positions, so without the sums every position receives
nearly the same vector: the first block washes the position out. Measured after each of 6 blocks of random weights: how
often a linear probe reads the position, and how alike (cosine) the vectors of a text are.

Systems: position-encoding-labs
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from descend.labs._evidence import Above, Below
from descend.metrics.probe import probe_accuracy
from descend.nn.attention.positions import AddPositions, SinusoidalPositions
from descend.nn.encoder import Encoder, EncoderBlock, WithoutResidual

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("DLN-B.43",)
PRINTED = (
    "Without residuals position information is lost after the first attention layer, and outputs at"
    " all positions become similar at random weights."
)
CLAIM = (
    "Without residual connections the position of a token is lost after the first attention layer and the vectors of"
    " all positions become alike; with them it stays readable through the stack."
)
PREDICTIONS = (
    Above(
        "probe with",
        0.6,
        "Share of positions that a probe reads after the last block, with residuals.",
    ),
    Below("probe without", 0.2, "The same without them; 1/16 is chance."),
    Above("alike without", 0.9, "Mean cosine of the vectors of a text without residuals."),
    Below("alike with", 0.9, "The same with them."),
)
SCOPE = "Six blocks of width 64 at random weights, texts of 16."
DEPTH, WIDTH, HEADS, LENGTH, VOCAB = 6, 64, 4, 16, 50
BUDGET = 1.0
PRICE = 2000  # texts that a second of one core buys
KINDS: dict[str, type[EncoderBlock]] = {"with": EncoderBlock, "without": WithoutResidual}


def measure(seed: int, budget: float) -> dict[str, Any]:
    """Probe accuracy and mean cosine after each block, with and without residuals."""
    n = max(40, round(PRICE * budget))
    columns: dict[str, Any] = {"block": list(range(DEPTH + 1))}
    for name, kind in KINDS.items():
        torch.manual_seed(seed)
        embedding, add = nn.Embedding(VOCAB, WIDTH), AddPositions(SinusoidalPositions(WIDTH))
        encoder = Encoder(kind(WIDTH, HEADS, 2 * WIDTH, nn.GELU()) for _ in range(DEPTH))
        tokens = torch.randint(VOCAB, (n, LENGTH), generator=torch.Generator().manual_seed(seed))
        with torch.no_grad():
            states = encoder.layers(add(embedding(tokens)))
        places = torch.arange(LENGTH).expand(n, -1).flatten()
        columns[f"probe_{name}"] = [probe_accuracy(x.flatten(0, 1), places) for x in states]
        columns[f"cosine_{name}"] = [likeness(x) for x in states]
    return {**columns, "texts": n, "chance": 1 / LENGTH}


def likeness(x: Tensor) -> float:
    """The mean cosine between the vectors of different positions of one text."""
    x = F.normalize(x, dim=-1)
    cosines, t = x @ x.mT, x.shape[1]
    return float((cosines.sum(dim=(1, 2)) - t).mean() / (t * (t - 1)))


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    """Of one seed, by the names of the predictions."""
    return {
        "probe with": numbers["probe_with"][-1],
        "probe without": numbers["probe_without"][-1],
        "alike without": numbers["cosine_without"][-1],
        "alike with": numbers["cosine_with"][-1],
    }


def needs(numbers: dict[str, Any]) -> float:
    """Seconds that a verdict takes, where the budget was too small for one."""
    return BUDGET if numbers["texts"] < 150 else 0.0


def figure(numbers: dict[str, Any]) -> Figure:
    """Probe accuracy and cosine against the block."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(10, 3.8), layout="constrained")
    titles = ("positions that a probe reads", "mean cosine between positions")
    for axes, what, title in zip(fig.subplots(1, 2), ("probe", "cosine"), titles, strict=True):
        for name, color in zip(KINDS, ("#2b6cd8", "#d66820"), strict=True):
            axes.plot(numbers["block"], numbers[f"{what}_{name}"], "o-", color=color, label=f"{name} residuals")
        axes.set_xlabel("block")
        axes.set_ylim(-0.05, 1.05)
        axes.set_title(title, fontsize=11, loc="left", fontweight="bold")
        axes.legend(frameon=False)
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    return fig
