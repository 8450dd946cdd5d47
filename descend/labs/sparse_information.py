"""What sparse attention loses: a token further back than the windows reach, with and without a global token.

    text     [CLS] noise .. value .. noise [?]            say at [?] which value it was, d positions back
    window   L layers of radius w reach L w < d           nothing arrives: the best guess is chance
    global   value → [CLS] → [?]                          two layers reach everything
    full     value → [?]                                  one layer does

MF 20.8.7 asks about a dependency 500 words back and answers that local and global attention together rarely lose it.
Here the three encoders differ in their attention alone and are trained on the same texts; every one is tested on texts
it has not seen. That a window alone cannot is not a matter of training: its output does not depend on the value at all
(`depends`).

Systems: longformer
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from descend.engine.minimise import minimise
from descend.labs._evidence import Above, AtLeast, AtMost
from descend.nn.attention.self_attention import SelfAttention
from descend.nn.attention.sliding_window import GlobalWindow, WindowAttention
from descend.nn.encoder import EncoderBlock
from descend.optim.rules import Adam

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("MF-B.65", "MF-B.92")
PRINTED = (
    "Local and global attention together rarely lose information: a dependency 500 words back is"
    " reached by global tokens."
)
CLAIM = (
    "Windows of radius w lose what lies more than L w positions back, whatever the training; with one global token the"
    " same windows solve the task as full attention does."
)
PREDICTIONS = (
    AtMost("window depends", 0, "1 where a window's answer depends on the value: it cannot."),
    AtLeast("global depends", 1, "1 where the answer with a global token does."),
    AtMost("window over chance", 0.05, "Accuracy of windows alone less chance."),
    Above(
        "learned",
        0.9,
        "The lesser accuracy with a global token and with full attention; open below, more training may cure it.",
        refuted=-1,
    ),
)
SCOPE = "Texts of 24, two layers of radius 2, one global token."
LENGTH, RADIUS, DEPTH, WIDTH, HEADS = 24, 2, 2, 32, 2
VALUES, NOISE = 4, 6
ASK, VOCAB = 1, 2 + VALUES + NOISE  # token 0 is [CLS], token 1 asks; then values, then noise
BATCH, TEST = 32, 1000
BUDGET = 6.0
PRICE = 42  # training steps of all three that a second of one core buys
KINDS = ("window", "global", "full")


class Reader(nn.Module):
    """tokens (b, t) -> logits of the value (b, VALUES), read at the last position"""

    def __init__(self, kind: str):
        super().__init__()
        self.kind = kind
        self.embed, self.place = nn.Embedding(VOCAB, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.ModuleList(EncoderBlock(WIDTH, HEADS, 2 * WIDTH, nn.GELU()) for _ in range(DEPTH))
        for block in self.blocks:
            cast("EncoderBlock", block).attn = attention_of(kind)
        self.head = nn.Linear(WIDTH, VALUES)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embed(tokens) + self.place.weight
        mask = (
            torch.ones_like(tokens).index_fill(1, torch.tensor([0]), 2)[:, None, None]
            if self.kind == "global"
            else None
        )
        for block in self.blocks:
            x = block(x, mask)
        return cast("Tensor", self.head(x[:, -1]))


def attention_of(kind: str) -> SelfAttention:
    """The one part in which the readers differ."""
    if kind == "window":
        return WindowAttention(WIDTH, HEADS, RADIUS)
    return GlobalWindow(WIDTH, HEADS, RADIUS) if kind == "global" else SelfAttention(WIDTH, HEADS)


def texts(n: int, random: torch.Generator) -> tuple[Tensor, Tensor]:
    """Tokens (n, LENGTH) with one value each, further from the end than all windows together reach; and the values."""
    tokens = torch.randint(2 + VALUES, VOCAB, (n, LENGTH), generator=random)
    values = torch.randint(VALUES, (n,), generator=random)
    places = torch.randint(1, LENGTH - 1 - 2 * DEPTH * RADIUS, (n,), generator=random)
    tokens[torch.arange(n), places] = 2 + values
    tokens[:, 0], tokens[:, -1] = 0, ASK
    return tokens, values


def measure(seed: int, budget: float) -> dict[str, Any]:
    """Accuracy on new texts of the three readers, after as many steps each."""
    steps = max(10, round(PRICE * budget))
    found: dict[str, Any] = {"steps": steps, "chance": 1 / VALUES, "texts": TEST}
    tokens, values = texts(TEST, torch.Generator().manual_seed(seed + 1))
    for kind in KINDS:
        torch.manual_seed(seed)
        reader, random = Reader(kind), torch.Generator().manual_seed(seed)

        def loss(reader: Reader = reader, random: torch.Generator = random) -> Tensor:
            x, y = texts(BATCH, random)
            return F.cross_entropy(reader(x), y)

        curve = minimise(reader, loss, steps, Adam(3e-3))
        with torch.no_grad():
            right = (reader(tokens).argmax(-1) == values).double().mean()
        found[kind] = {"accuracy": float(right), "loss": curve, "depends": depends(reader, tokens[:50])}
    return found


def depends(reader: Reader, tokens: Tensor) -> bool:
    """Whether the answer changes at all when the value is another."""
    is_value = (tokens >= 2) & (tokens < 2 + VALUES)
    other = torch.where(is_value, 2 + (tokens - 1) % VALUES, tokens)
    with torch.no_grad():
        return not torch.equal(reader(tokens), reader(other))


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    """Of one seed, by the names of the predictions."""
    window, through, full = (numbers[kind] for kind in KINDS)
    return {
        "window depends": float(window["depends"]),
        "global depends": float(through["depends"]),
        "window over chance": window["accuracy"] - numbers["chance"],
        "learned": min(through["accuracy"], full["accuracy"]),
    }


def figure(numbers: dict[str, Any]) -> Figure:
    """Loss while training, and accuracy on new texts beside chance."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(9, 3.9), layout="constrained")
    left, right = fig.subplots(1, 2)
    colors = dict(zip(KINDS, ("#d66820", "#2b6cd8", "#3b8f4a"), strict=True))
    for kind in KINDS:
        left.plot(numbers[kind]["loss"], color=colors[kind], label=kind)
    left.set_title("loss", fontsize=11, loc="left", fontweight="bold")
    left.set_xlabel("step")
    left.legend(frameon=False, fontsize=9)
    right.bar(list(KINDS), [numbers[kind]["accuracy"] for kind in KINDS], color=list(colors.values()))
    right.axhline(numbers["chance"], color="0.6", ls=":")
    right.set_ylim(0, 1)
    right.set_title("accuracy on new texts", fontsize=11, loc="left", fontweight="bold")
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    return fig
