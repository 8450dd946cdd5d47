"""Attention mixes, it does not bend: what stacks of it do with and without a feed-forward part in each block.

    X ← X + softmax(X Xᵀ / √d) X          every row stays in the span of the first rows, at any depth
    X ← X + W_2 relu(W_1 X)               leaves it

DLN: attention's output is a linear mixture of its values, and the feed-forward network adds the non-linearity that is
missing. Measured in three ways, each with and without feed-forward parts:

    span       random inputs and weights, no projections: the share of the output outside the span of the inputs
    single     texts of one vector of signs: say the product of its first three. Attention has one weight here, and it
               is 1: a stack without feed-forward parts is a linear map, which tells at most 6 of the 8 cases
    text       texts of 8 such vectors, the same question at every place (learned projections, two heads)

The first two are exact and hold. The third is where the words "only mixes linearly" mislead: the weights are computed
from the input, so the output is not a linear function of it, and one layer of attention without a feed-forward part
learns the product when there are other vectors to weigh. That refutes the claim as it is usually drawn from the span.

Systems: attention-properties
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor, nn

from descend.labs._evidence import Above, AtLeast, AtMost, Below
from descend.labs._train import train
from descend.nn.attention.self_attention import SelfAttention
from descend.nn.mlp import MLP
from descend.ops.attention.dot_product import attention

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("DLN-B.38",)
PRINTED = (
    "Attention only mixes value vectors linearly, so outputs lie in the span of the inputs; the FFN"
    " adds the missing non-linearity."
)
CLAIM = (
    "Attention only mixes its values: its outputs stay in the span of its inputs, so stacks of it learn no"
    " non-linear function of a token, however deep; a feed-forward part in each block adds what is missing."
)
PREDICTIONS = (
    AtMost(
        "best without",
        0.77,
        "The best accuracy of a stack without feed-forward parts; a linear map reaches 6 of 8, and two"
        " points are for chance. More refutes the claim.",
    ),
    Below(
        "left without",
        1e-9,
        "The share of the output outside the span of the inputs, no feed-forward parts: rounding only.",
    ),
    Above("left with", 0.1, "The same share with feed-forward parts: it has to leave the span."),
)
CONTROLS = (
    AtLeast(
        "learned with",
        0.95,
        "The worst accuracy of a stack with feed-forward parts: below it the task was not learned and nothing follows.",
    ),
)
SCOPE = "Products of three signs, stacks of 1 to 6 blocks of width 32; texts of one vector and of eight."
DEPTHS, STACK = (1, 2, 4), 6
SIGNS, LENGTH, WIDTH, BATCH, RATE = 5, 8, 32, 32, 5e-3
BUDGET = 14.0
PRICE = 17  # steps of all six stacks that a second of one core buys
LINEAR = 6 / 8  # cases of the product of three signs that a half-space can get right
LEAST = 200  # steps below which nothing is said


class Block(nn.Module):
    """x + attention(x), and + mlp(x) where there is one."""

    def __init__(self, mlp: nn.Module | None):
        super().__init__()
        self.attn, self.mlp = SelfAttention(WIDTH, 2), mlp

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(x)
        return x if self.mlp is None else x + self.mlp(x)


class Reader(nn.Module):
    """signs (b, t, s) -> logits (b, t) of the product of the first three."""

    def __init__(self, depth: int, feed_forward: str):
        super().__init__()
        self.first, self.last = nn.Linear(SIGNS, WIDTH), nn.Linear(WIDTH, 1)
        parts = (MLP(WIDTH, 2 * WIDTH, nn.GELU()) if feed_forward == "with" else None for _ in range(depth))
        self.blocks = nn.Sequential(*map(Block, parts))

    def forward(self, x: Tensor) -> Tensor:
        return cast("Tensor", self.last(self.blocks(self.first(x)))).squeeze(-1)


def texts(n: int, length: int, random: torch.Generator) -> tuple[Tensor, Tensor]:
    """Signs (n, t, s), and whether the product of the first three is positive (n, t)."""
    x = 2.0 * torch.randint(2, (n, length, SIGNS), generator=random) - 1
    return x, (x[..., :3].prod(-1) > 0).float()


def outside_span(seed: int, feed_forward: str) -> list[float]:
    """‖the part of the output outside the span of the inputs‖ / ‖output‖ after each block of random weights."""
    random = torch.Generator().manual_seed(seed)
    draw = lambda *shape: torch.randn(*shape, generator=random, dtype=torch.float64)
    x = draw(4, WIDTH)
    basis = torch.linalg.qr(x.T).Q  # (d, 4)
    shares = []
    for _ in range(STACK):
        x = x + attention(x, x, x)[0]
        if feed_forward == "with":
            x = x + (x @ draw(WIDTH, WIDTH) / WIDTH**0.5).relu() @ draw(WIDTH, WIDTH) / WIDTH**0.5
        shares.append(float((x - x @ basis @ basis.T).norm() / x.norm()))
    return shares


def measure(seed: int, budget: float) -> dict[str, Any]:
    """Accuracy by depth on texts of 8 vectors and of one, and the share outside the span after each block."""
    steps = max(5, round(PRICE * budget))
    found: dict[str, Any] = {"depth": list(DEPTHS)}
    for kind in ("without", "with"):
        for depth in DEPTHS:
            for name, value in learn(depth, kind, steps, seed).items():
                found.setdefault(f"{name}_{kind}", []).append(value)
    span = {kind: outside_span(seed, kind) for kind in ("without", "with")}
    return {**found, "steps": steps, "chance": 0.5, "outside_span": span}


def learn(depth: int, feed_forward: str, steps: int, seed: int) -> dict[str, float]:
    """A stack's accuracy on new texts after this many steps, one stack for texts of 8, one for texts of 1."""
    found = {}
    for name, length in (("text", LENGTH), ("single", 1)):
        torch.manual_seed(seed)
        random = torch.Generator().manual_seed(seed)
        model = Reader(depth, feed_forward)

        def loss(model: Reader = model, length: int = length, random: torch.Generator = random) -> Tensor:
            x, y = texts(BATCH * LENGTH // length, length, random)
            return nn.functional.binary_cross_entropy_with_logits(model(x), y)

        train(model, loss, steps, RATE)
        x, y = texts(4000 // length, length, random)
        with torch.no_grad():
            found[name] = float(((model(x) > 0) == (y > 0)).double().mean())
    return found


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    """Of one seed, by the names of the predictions."""
    span = numbers["outside_span"]
    return {
        "best without": max(numbers["text_without"] + numbers["single_without"]),
        "left without": max(span["without"]),
        "left with": min(span["with"]),
        "learned with": min(numbers["text_with"] + numbers["single_with"]),
    }


def needs(numbers: dict[str, Any]) -> float:
    """Seconds that a verdict takes, where the budget was too small for one."""
    return BUDGET if numbers["steps"] < LEAST else 0.0


def figure(numbers: dict[str, Any]) -> Figure:
    """Accuracy against depth, and the share outside the span after each block."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(10, 3.8), layout="constrained")
    left, right = fig.subplots(1, 2)
    for kind, color in (("with", "#2b6cd8"), ("without", "#d66820")):
        left.plot(numbers["depth"], numbers[f"text_{kind}"], "o-", color=color, label=f"{kind} feed-forward")
        left.plot(numbers["depth"], numbers[f"single_{kind}"], "o:", color=color, label="a text of one vector")
        right.plot(range(1, STACK + 1), numbers["outside_span"][kind], "o-", color=color, label=f"{kind} feed-forward")
    left.axhline(LINEAR, color="0.4", ls="--", lw=1, label="the best linear map")
    left.set_xticks(numbers["depth"])
    left.set_ylim(0.4, 1.03)
    left.set_title("accuracy of the product of three signs", fontsize=11, loc="left", fontweight="bold")
    right.set_title("share of the output outside the span of the inputs", fontsize=11, loc="left", fontweight="bold")
    for axes in (left, right):
        axes.set_xlabel("blocks")
        axes.legend(frameon=False, fontsize=9)
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    return fig
