"""The floor under every loss: nobody can guess a coin.

    "I flipped a coin and got heads . I flipped a coin and got tails ."      heads and tails with chance ½ each
    at the coin    −log p → log 2 = 0.693 nats          everywhere else → 0          in all log 2 for each sentence

VOM 14.4.1 has the sentence as its example of irreducible loss; there is no formula to check but the entropy itself.

Systems: irreducible-loss
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn import functional as F

from descend.labs._evidence import AtMost, Within
from descend.labs._train import train
from descend.models.gpt2 import GPT2, GPT2Config
from descend.seeds import generator

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("VOM-B.117",)
PRINTED = "Part of the loss is the entropy of language: after 'I flipped a coin and got' nobody knows the next word."
CLAIM = "A trained model's loss at a fair coin is log 2, and nothing where the text leaves no choice."
PREDICTIONS = (
    Within(
        "at the coin, over log 2", 0.98, 1.02, "within 2% of log 2; lower would mean a leak, higher too little training"
    ),
    AtMost("elsewhere", 0.02, "nats a word that is certain; more refutes it"),
)
SCOPE = "one sentence of eight words, a transformer of 3,000 parameters"
BUDGET = 4.0
PRICE = 100  # steps that a second buys
SENTENCE = ["I", "flipped", "a", "coin", "and", "got", "heads", "."]
WORDS = [*dict.fromkeys(SENTENCE), "tails"]
COIN, ROWS, SENTENCES, LEAST = SENTENCE.index("heads"), 32, 3, 300


def draw(rows: int, random: torch.Generator) -> Tensor:
    """Three sentences a row, a fair coin for each."""
    line = torch.tensor([WORDS.index(word) for word in SENTENCE]).repeat(rows, SENTENCES)
    coins = torch.randint(2, (rows, SENTENCES), generator=random)
    line[:, COIN :: len(SENTENCE)] = torch.where(coins == 1, WORDS.index("tails"), WORDS.index("heads"))
    return line


def losses(model: GPT2, text: Tensor) -> Tensor:
    """−log p of each word after the first."""
    return F.cross_entropy(model(text[:, :-1]).transpose(1, 2), text[:, 1:], reduction="none")


def measure(seed: int, budget: float) -> dict[str, Any]:
    """Loss at each word of the sentence, and at the coin while it learns."""
    steps = max(10, round(PRICE * budget))
    torch.manual_seed(seed)
    model = GPT2(GPT2Config(len(WORDS), SENTENCES * len(SENTENCE), 16, 1, 2, dropout=0.0))
    random = generator(seed, 1)
    course = train(model, lambda: losses(model, draw(ROWS, random)).mean(), steps, 1e-2)
    with torch.no_grad():
        last = losses(model, draw(500, generator(seed, 2)))[:, -len(SENTENCE) :].double().mean(0)
    return {"word": SENTENCE, "loss": last.tolist(), "steps": steps, "course": course[:: max(1, steps // 60)]}


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    others = [value for i, value in enumerate(numbers["loss"]) if i != COIN]
    return {"at the coin, over log 2": numbers["loss"][COIN] / math.log(2), "elsewhere": max(others)}


def needs(numbers: dict[str, Any]) -> float:
    return 0.0 if numbers["steps"] >= LEAST else LEAST / PRICE


def figure(numbers: dict[str, Any]) -> Figure:
    """A bar for each word."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(6.5, 3.5), layout="constrained")
    axes = fig.subplots()
    axes.bar(range(len(numbers["word"])), numbers["loss"], color="#2b6cd8")
    axes.set_xticks(range(len(numbers["word"])), numbers["word"])
    axes.axhline(math.log(2), color="0.4", ls=":", label="log 2")
    axes.set_ylabel("nats")
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    return fig
