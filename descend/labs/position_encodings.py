"""All position encodings on one order-sensitive and one order-tolerant task, and at twice the trained length.

    order       one A and one B among fillers: does A come before B?        ("dog bites man" against "man bites dog")
    presence    does a certain filler occur at all?                         needs no order

    none · index appended · fraction appended · sinusoids added · learned added · relative bias · rotary · ALiBi

The same two-block encoder each time: only what tells it the positions differs. Without positions its output for a text
and for the text reordered are equal, so it is at chance on the order task. A causal mask alone breaks the symmetry, so
it has a row; ALiBi's bias is the same on both sides and is used as it was made, under a causal mask. Trained on
lengths up to 16 and tested at 16 and at 32, where learned positions have no vectors and refuse.

Systems: position-encoding-labs, additive-position-information, alibi
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from descend.errors import Mistake
from descend.labs._evidence import Above, AtLeast, Below
from descend.labs._train import train
from descend.losses.classification import cross_entropy
from descend.nn.attention.multi_head import Attention
from descend.nn.attention.positions import (
    AddPositions,
    Alibi,
    AppendPositions,
    FractionPositions,
    IndexPositions,
    LearnedPositions,
    SinusoidalPositions,
)
from descend.nn.attention.relative_bias import ClippedRelativeBias
from descend.nn.attention.rotary import Rope
from descend.nn.mlp import MLP

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("VOM-B.41", "DLN-B.41", "VOM-B.31")
PRINTED = (
    "Without positions performance collapses on an order-sensitive task and stays reasonable on an order-tolerant one."
)
CLAIM = (
    "Without positions a transformer encoder is at chance on a task of word order and unharmed on one that needs no"
    " order; every position encoding lifts it far above chance."
)
PREDICTIONS = (
    Below("blind to order", 0.06, 'Distance of "none" from chance on the task of order.'),
    Above("unharmed", 0.9, 'Accuracy of "none" where no order is needed.'),
    Above(
        "lifted",
        0.8,
        "The least accuracy of an encoding on the task of order; a causal mask alone is not counted as one.",
    ),
    AtLeast("learned refuse", 1, "1 where learned positions refuse the double length."),
)
SCOPE = "Texts of 16 of ten tokens, encoders of two blocks of width 32."
VOCAB, LENGTH, WIDTH, HEADS, BATCH, RATE = 10, 16, 32, 4, 32, 6e-3
A, B, WANTED = 0, 1, 2
BUDGET = 13.0
PRICE = 16  # steps of all models that a second of one core buys


class Block(nn.Module):
    """x + attention(norm(x)), then + mlp(norm(x)), with a bias on the scores or turned queries and keys."""

    def __init__(self, bias: nn.Module | None):
        super().__init__()
        self.norm_1, self.norm_2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attn, self.mlp = Attention(WIDTH, HEADS), MLP(WIDTH, 2 * WIDTH, nn.GELU())
        self.bias = bias

    def forward(self, x: Tensor, causal: bool, angles: tuple[Tensor, Tensor] | None) -> Tensor:
        t = x.shape[1]
        mask = None if self.bias is None else self.bias(t, t)
        x = x + self.attn(self.norm_1(x), mask=mask, causal=causal, angles=angles)
        return x + self.mlp(self.norm_2(x))


class Reader(nn.Module):
    """tokens (b, t) -> logits of the order (b, 2) and of the presence (b, 2), from the mean over positions."""

    def __init__(
        self,
        code: nn.Module,
        narrow: int = 0,
        bias: Callable[[], nn.Module] | None = None,
        rope: Rope | None = None,
        causal: bool = False,
    ):
        super().__init__()
        self.embedding = nn.Embedding(VOCAB, WIDTH - narrow)
        nn.init.normal_(self.embedding.weight, std=0.02)  # as learned positions begin: neither drowns the other
        self.code, self.rope, self.causal = code, rope, causal
        self.blocks = nn.ModuleList([Block(bias() if bias else None) for _ in range(2)])
        self.heads = nn.ModuleList([nn.Linear(WIDTH, 2) for _ in range(2)])

    def forward(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        x = self.code(self.embedding(tokens))
        angles = None if self.rope is None else self.rope.angles(torch.arange(tokens.shape[1]), WIDTH // HEADS)
        for block in self.blocks:
            x = block(x, self.causal, angles)
        order, presence = (head(x.mean(dim=1)) for head in self.heads)
        return order, presence


ENCODINGS: dict[str, Callable[[], Reader]] = {
    "none": lambda: Reader(nn.Identity()),
    "causal mask alone": lambda: Reader(nn.Identity(), causal=True),
    "index": lambda: Reader(AppendPositions(IndexPositions()), narrow=1),
    "fraction": lambda: Reader(AppendPositions(FractionPositions()), narrow=1),
    "sinusoidal": lambda: Reader(AddPositions(SinusoidalPositions(WIDTH))),
    "learned": lambda: Reader(AddPositions(LearnedPositions(LENGTH, WIDTH))),
    "relative": lambda: Reader(nn.Identity(), bias=lambda: ClippedRelativeBias(HEADS, LENGTH)),
    "rotary": lambda: Reader(nn.Identity(), rope=Rope()),
    "alibi": lambda: Reader(nn.Identity(), bias=lambda: Alibi(HEADS), causal=True),
}


def texts(n: int, length: int, random: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Tokens (n, length), whether A comes before B (n), whether the wanted filler occurs (n), half of each."""
    x = torch.randint(WANTED + 1, VOCAB, (n, length), generator=random)
    places = torch.rand(n, length, generator=random).argsort(dim=1)[:, :3]
    present = torch.randint(2, (n,), generator=random)
    rows = torch.arange(n)
    x[rows, places[:, 0]] = A
    x[rows, places[:, 1]] = B
    x[rows, places[:, 2]] = torch.where(present == 1, WANTED, x[rows, places[:, 2]])
    return x, (places[:, 0] < places[:, 1]).long(), present


def accuracies(model: Reader, length: int, seed: int) -> tuple[float | None, float | None]:
    """Of the order and the presence task at a length; None where the model refuses the length."""
    x, order, presence = texts(1000, length, torch.Generator().manual_seed(seed + 10_000))
    try:
        with torch.no_grad():
            found = model(x)
    except Mistake:
        return None, None
    first, second = (float((z.argmax(-1) == y).double().mean()) for z, y in zip(found, (order, presence), strict=True))
    return first, second


def measure(seed: int, budget: float) -> dict[str, Any]:
    """Accuracy of every encoding on both tasks, at the trained length and at twice that."""
    steps = max(5, round(PRICE * budget))
    columns: dict[str, list[Any]] = {"encoding": list(ENCODINGS)}
    for build in ENCODINGS.values():
        torch.manual_seed(seed)
        random = torch.Generator().manual_seed(seed)
        model = build()

        def loss(model: Reader = model, random: torch.Generator = random) -> Tensor:
            length = int(torch.randint(LENGTH // 2, LENGTH + 1, (1,), generator=random))
            x, order, presence = texts(BATCH, length, random)
            z = model(x)
            return (cross_entropy(z[0], order) + cross_entropy(z[1], presence)).mean()

        train(model, loss, steps, RATE)
        here, there = (accuracies(model, length, seed) for length in (LENGTH, 2 * LENGTH))
        row = {"order": here[0], "presence": here[1], "order_at_32": there[0], "presence_at_32": there[1]}
        for name, value in row.items():
            columns.setdefault(name, []).append(value)
    return {**columns, "steps": steps, "chance": 0.5}


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    """Of one seed, by the names of the predictions."""
    order, presence, longer = (
        dict(zip(numbers["encoding"], numbers[name], strict=True)) for name in ("order", "presence", "order_at_32")
    )
    return {
        "blind to order": abs(order["none"] - 0.5),
        "unharmed": presence["none"],
        "lifted": min(value for name, value in order.items() if name not in ("none", "causal mask alone")),
        "learned refuse": float(longer["learned"] is None),
    }


def needs(numbers: dict[str, Any]) -> float:
    """Seconds that a verdict takes, where the budget was too small for one."""
    return BUDGET if numbers["steps"] < 150 else 0.0


def figure(numbers: dict[str, Any]) -> Figure:
    """Bars for each encoding: the order task at the trained length and at twice that."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(10, 4), layout="constrained")
    axes = fig.subplots()
    at = range(len(numbers["encoding"]))
    for shift, name, color in ((-0.27, "presence", "0.75"), (0, "order", "#2b6cd8"), (0.27, "order_at_32", "#d66820")):
        heights = [value or 0 for value in numbers[name]]
        axes.bar([i + shift for i in at], heights, 0.26, color=color, label=name.replace("_", " "))
    axes.axhline(0.5, color="0.4", ls=":", label="chance")
    axes.set_xticks(list(at), [name.replace(" ", "\n") for name in numbers["encoding"]])
    axes.set_ylim(0, 1.02)
    axes.set_title("accuracy (no bar: length not supported)", fontsize=11, loc="left", fontweight="bold")
    axes.legend(frameon=False, ncols=4, loc="lower center")
    axes.spines[["top", "right"]].set_visible(False)
    return fig
