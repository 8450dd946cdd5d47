"""The bottleneck of a fixed context: the longer the source, the less of it fits into one vector.

    fixed       s_0 = c = the encoder's last state              everything in `width` numbers
    attention   c_t = Σ_j α_tj h_j at every step                the source stays where it is

Both nets learn to say a sequence of random letters again, of 2 to 14 letters, with the same cells, width and number
of steps, and are asked for sequences of each length. Scored is the share of letters that are right when the net has
read the true ones before (teacher forcing).

Systems: rnn-encoder-decoder, rnn-attention-decoder
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from descend.engine.minimise import minimise
from descend.labs._evidence import AtLeast, Below
from descend.models.seq2seq import Seq2Seq, Seq2SeqConfig
from descend.nn.recurrent.decoders import Context
from descend.optim.rules import Adam
from descend.optim.schedules import Linear

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("MF-B.22", "S940-DLD.68", "VOM-A.66")
PRINTED = "One fixed context vector loses information for long inputs; attention removes the bottleneck."
CLAIM = (
    "An encoder-decoder with one fixed context vector gets worse as the source gets longer; with attention, trained"
    " for as long, it does not."
)
PREDICTIONS = (
    AtLeast(
        "fixed loses",
        0.15,
        "Accuracy with a fixed context at the shortest length less that at the longest.",
    ),
    Below("attention loses", 0.1, "The same with attention."),
)
CONTROLS = (
    AtLeast("attention learned", 0.9, "Its worst accuracy: before that training was too short."),
    AtLeast("fixed learned", 0.5, "The fixed context's accuracy at the shortest length."),
)
SCOPE = "Random letters, sequences of 2 to 14, cells of width 32, teacher forcing."
LETTERS, WIDTH, LONGEST = 20, 32, 14
LENGTHS = (2, 4, 6, 8, 10, 12, 14)
BUDGET = 8.0
PRICE = 56  # training steps of both nets that a second of one core buys
BATCH, ASKED = 64, 256
CONTEXTS: dict[str, Context] = {"fixed": "start", "attention": "current"}


def measure(seed: int, budget: float) -> dict[str, Any]:
    """Accuracy by length of both nets."""
    steps = max(10, round(PRICE * budget))
    found: dict[str, Any] = {"length": list(LENGTHS), "steps": steps, "chance": 1 / LETTERS}
    for name, context in CONTEXTS.items():
        torch.manual_seed(seed)
        config = Seq2SeqConfig(LETTERS + 2, WIDTH, 1, 0.0, "gru", context, "additive")
        model, random = Seq2Seq(config), torch.Generator().manual_seed(seed)
        train(model, steps, random)
        found[name] = [accuracy(model, length, random) for length in LENGTHS]
    return found


def draw(n: int, length: int, random: torch.Generator) -> Tensor:
    """Letters 2 .. LETTERS + 1 (0 is the start and padding, 1 the end)."""
    return torch.randint(2, LETTERS + 2, (n, length), generator=random)


def train(model: Seq2Seq, steps: int, random: torch.Generator) -> None:
    """Copying, one length a step, with a rate that falls to a tenth."""

    def loss() -> Tensor:
        x = draw(BATCH, int(torch.randint(2, LONGEST + 1, (1,), generator=random)), random)
        return torch.nn.functional.cross_entropy(model(x, before(x)).flatten(0, 1), x.flatten())

    minimise(model, loss, steps, Adam(1e-2), Linear(floor=0.1), clip=1.0)


def before(x: Tensor) -> Tensor:
    """What the decoder reads: a start and all letters but the last."""
    return torch.cat([torch.zeros_like(x[:, :1]), x[:, :-1]], dim=1)


@torch.no_grad()
def accuracy(model: Seq2Seq, length: int, random: torch.Generator) -> float:
    """Share of right letters."""
    x = draw(ASKED, length, random)
    return float((model(x, before(x)).argmax(-1) == x).float().mean())


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    """Of one seed, by the names of the predictions."""
    fixed, attention = numbers["fixed"], numbers["attention"]
    return {
        "fixed loses": fixed[0] - fixed[-1],
        "attention loses": attention[0] - attention[-1],
        "attention learned": min(attention),
        "fixed learned": fixed[0],
    }


def figure(numbers: dict[str, Any]) -> Figure:
    """Accuracy against the length of the source."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(6.5, 4), layout="constrained")
    axes = fig.subplots()
    axes.plot(numbers["length"], numbers["attention"], "o-", color="#2b6cd8", label="attention")
    axes.plot(numbers["length"], numbers["fixed"], "o-", color="#d66820", label="fixed context")
    axes.axhline(numbers["chance"], color="0.6", ls=":", label="chance")
    axes.set_xlabel("letters in the source")
    axes.set_ylabel("share of correct letters")
    axes.set_ylim(0, 1.02)
    axes.legend(frameon=False)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    return fig
