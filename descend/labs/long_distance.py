"""Long-distance agreement: the first word decides the answer, n words of noise later.

    subject, noise × n, question  ->  which of two subjects it was

A tanh net of ordinary weights must learn it from a gradient that faded with every step; an LSTM with open forget gates
has the cell state, and attention looks at the first word directly. All are trained equally long, for each n anew.

The second half asks what the LSTM's two states hold (MF 16.4.4): at every step of the longest task, how much c and h
change, ‖s_t - s_{t-1}‖ / ‖s_t‖, and how well a linear probe (least squares) reads the subject from each, half of the
way through.

Systems: sequence-property-probes, lstm-gradient-highway, vanishing-exploding-in-time
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor, nn

from descend.engine.minimise import minimise
from descend.labs._evidence import Above, AtLeast, Below
from descend.nn.init import forget_bias_
from descend.nn.recurrent.heads import AttentionPool, LastState
from descend.nn.recurrent.layers import Cell, Recurrent
from descend.optim.rules import Adam

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("MF-B.11", "MF-B.20")
PRINTED = "A vanilla RNN is expected to use local context only; c_t is long-term and changes slowly, h_t is short-term."
CLAIM = (
    "As the distance grows, a vanilla RNN falls to chance while an LSTM and attention still learn the agreement; the"
    " LSTM's cell state changes more slowly than its hidden state, and holds the subject."
)
PREDICTIONS = (
    Below("RNN far", 0.65, "The RNN's accuracy at the longest distance; 0.5 is chance."),
    Above("LSTM far", 0.9, "The LSTM's there; refuted if it is as lost as the RNN, else open.", refuted=0.65),
    Below("change of c", 1, "How much c changes in a step, over how much h does."),
    Above(
        "subject from c",
        0.9,
        "How well a linear probe reads the subject from c half of the way.",
    ),
)
CONTROLS = (
    AtLeast(
        "learned",
        0.9,
        "The least accuracy of all nets at the shortest distance and of attention at every one.",
    ),
)
SCOPE = "Two subjects, noise of 2 to 24 words, nets of width 32, trained equally long."
DISTANCES = (2, 8, 24)
OPEN = 3.0  # forget bias of the LSTM: f starts at 0.95
WORDS, WIDTH, BATCH, ASKED = 12, 32, 64, 512
BUDGET = 3.0
PRICE = 70  # training steps of all nets and distances that a second of one core buys
NETS = ("RNN", "LSTM", "attention")


class Net(nn.Module):
    """Words (b, t) -> logits of the two subjects: a recurrent net, or attention over the words alone."""

    def __init__(self, name: str):
        super().__init__()
        self.embed = nn.Embedding(WORDS, WIDTH)
        self.layers = None if name == "attention" else Recurrent(cast("Cell", name.lower()), WIDTH, WIDTH)
        if self.layers is not None and isinstance(self.layers.layers, nn.LSTM):
            forget_bias_(self.layers.layers, OPEN)
        self.head = AttentionPool(WIDTH, 2) if self.layers is None else LastState(WIDTH, 2)

    def forward(self, words: Tensor) -> Tensor:
        x = self.embed(words)
        h, last = (x, x[:, -1]) if self.layers is None else self.final(x)
        return cast("Tensor", self.head(h, last, torch.full((len(words),), words.shape[1])))

    def final(self, x: Tensor) -> tuple[Tensor, Tensor]:
        assert self.layers is not None
        h, state = self.layers(x)
        return h, state[0, -1]


def draw(n: int, distance: int, random: torch.Generator) -> tuple[Tensor, Tensor]:
    """Subject 0 or 1, noise words, and the subject as the answer."""
    words = torch.randint(2, WORDS, (n, distance + 1), generator=random)
    words[:, 0] = torch.randint(2, (n,), generator=random)
    return words, words[:, 0]


def measure(seed: int, budget: float) -> dict[str, Any]:
    """Accuracy by distance for each net, and the two states of the LSTM."""
    steps = max(20, round(PRICE * budget))
    found: dict[str, Any] = {"distance": list(DISTANCES), "steps": steps}
    for name in NETS:
        found[name] = []
        for distance in DISTANCES:
            torch.manual_seed(seed)
            net, random = Net(name), torch.Generator().manual_seed(seed)
            train(net, distance, steps, random)
            words, y = draw(ASKED, distance, random)
            with torch.no_grad():
                found[name].append(float((net(words).argmax(-1) == y).float().mean()))
            if name == "LSTM" and distance == DISTANCES[-1]:
                found["states"] = probe(net, *draw(ASKED, distance, random))
    return found


def train(net: Net, distance: int, steps: int, random: torch.Generator) -> None:
    """The same steps for every net and distance."""

    def loss() -> Tensor:
        words, y = draw(BATCH, distance, random)
        return nn.functional.cross_entropy(net(words), y)

    minimise(net, loss, steps, Adam(5e-3), clip=1.0)


@torch.no_grad()
def probe(net: Net, words: Tensor, y: Tensor) -> dict[str, float]:
    """How much c and h change in a step, and how well the subject is read from each half of the way through."""
    assert net.layers is not None
    x, state, seen = net.embed(words), net.layers.start(len(words)), []
    for x_t in x.split(1, dim=1):
        _, state = net.layers(x_t, state)
        seen.append(state[:, -1])  # (2, b, d): h and c
    found = {}
    for name, states in zip(("h", "c"), torch.stack(seen).unbind(1), strict=True):
        change = (states[1:] - states[:-1]).norm(dim=-1) / states[1:].norm(dim=-1)
        found[f"change of {name}"] = float(change.mean())
        middle = torch.cat([states[len(seen) // 2], torch.ones(len(y), 1)], dim=1)
        half, target = len(y) // 2, 2.0 * y - 1
        w = torch.linalg.lstsq(middle[:half], target[:half, None]).solution
        found[f"subject from {name}"] = float(((middle[half:] @ w)[:, 0].sign() == target[half:]).float().mean())
    return found


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    """Of one seed, by the names of the predictions."""
    states = numbers["states"]
    return {
        "RNN far": numbers["RNN"][-1],
        "LSTM far": numbers["LSTM"][-1],
        "change of c": states["change of c"] / states["change of h"],
        "subject from c": states["subject from c"],
        "learned": min(numbers["RNN"][0], numbers["LSTM"][0], *numbers["attention"]),
    }


def figure(numbers: dict[str, Any]) -> Figure:
    """Accuracy against the distance."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(6.5, 4), layout="constrained")
    axes = fig.subplots()
    for name, colour in zip(NETS, ("#d66820", "#2b6cd8", "#3a8f4d"), strict=True):
        axes.plot(numbers["distance"], numbers[name], "o-", color=colour, label=name)
    axes.axhline(0.5, color="0.6", ls=":", label="chance")
    axes.set_xlabel("words between subject and question")
    axes.set_ylabel("share of correct answers")
    axes.set_ylim(0.4, 1.02)
    axes.legend(frameon=False)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    return fig
