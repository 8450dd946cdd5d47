"""Without the causal mask a language model reads its answers: the loss falls below what is possible, writing fails.

    masked       p(x_{i+1} | x_1 … x_i)                        the loss cannot fall below the entropy rate h
    unmasked     p(x_{i+1} | x_1 … x_t), x_{i+1} among them     the loss falls towards 0

The same two-block model, with and without the mask, learns the same texts: a Markov chain, of which the entropy rate is
known, h = −Σ π_a P_ab log P_ab. Then both are used from left to right, each given the words so far and nothing after
them: the loss of the next word, and what the chain itself thinks of the words that the model writes. A first word is
drawn evenly, so that it costs log 8 and is left out of all figures.

Systems: causal-mask
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor, nn

from descend.labs._evidence import Above, AtMost, Below
from descend.labs._train import train
from descend.losses.classification import cross_entropy
from descend.nn.encoder import Encoder, PreNormBlock

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("VOM-B.24", "DLN-B.46", "MF-B.34")
PRINTED = (
    "Without a mask the model copies the next token from its input: the training loss goes to near"
    " zero, and generation fails."
)
CLAIM = (
    "Without the causal mask the training loss falls far below the entropy of the data, and used from left to right"
    " the model is worse than with the mask, at predicting and at writing."
)
PREDICTIONS = (
    Below(
        "training loss",
        0.5,
        "The unmasked model's training loss as a share of the entropy rate: below what is possible.",
    ),
    Above(
        "worse at predicting",
        0.5,
        "Nats a word that it is worse than the masked one, used from left to right.",
    ),
    Above(
        "worse at writing",
        0.5,
        "The same for what the chain thinks of the words that it writes.",
    ),
)
CONTROLS = (
    AtMost(
        "masked over entropy",
        0.1,
        "Nats by which the masked model is above the entropy rate: before that training was too short.",
    ),
)
SCOPE = "A Markov chain of 8 words with known entropy, two blocks of width 32."
WORDS, LENGTH, WIDTH, HEADS, BATCH, RATE = 8, 16, 32, 4, 32, 6e-3
TESTED = 400
BUDGET = 5.0
PRICE = 60  # steps of both models that a second of one core buys
LEAST = 200  # steps below which nothing is said


class Writer(nn.Module):
    """tokens (b, t) -> logits of the token after each (b, t, v)"""

    def __init__(self, causal: bool):
        super().__init__()
        self.causal = causal
        self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.encoder = Encoder(PreNormBlock(WIDTH, HEADS, 2 * WIDTH, nn.GELU()) for _ in range(2))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WORDS)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.words(tokens) + self.places(torch.arange(tokens.shape[1]))
        return cast("Tensor", self.head(self.norm(self.encoder(x, causal=self.causal))))


def chain(random: torch.Generator) -> Tensor:
    """P (words, words): every word has three likely successors."""
    p = torch.full((WORDS, WORDS), 0.02 / WORDS, dtype=torch.float64)
    for row in p:
        row[torch.randperm(WORDS, generator=random)[:3]] += 0.98 * torch.tensor([0.6, 0.3, 0.1], dtype=torch.float64)
    return p


def entropy_rate(p: Tensor) -> float:
    """−Σ π_a P_ab log P_ab, with π P = π."""
    stationary = torch.linalg.matrix_power(p, 1000)[0]
    return float(-(stationary[:, None] * p * p.log()).sum())


def texts(p: Tensor, n: int, random: torch.Generator) -> Tensor:
    """(n, LENGTH + 1): inputs and targets are these texts without the last and without the first word."""
    found = [torch.randint(WORDS, (n,), generator=random)]
    for _ in range(LENGTH):
        found.append(torch.multinomial(p[found[-1]], 1, generator=random).squeeze(1))
    return torch.stack(found, 1)


@torch.no_grad()
def loss_from_left_to_right(model: Writer, x: Tensor) -> float:
    """−log p of each next word, when the model sees the words before it and no others."""
    losses = [cross_entropy(model(x[:, :t])[:, -1], x[:, t]).mean() for t in range(1, LENGTH + 1)]
    return float(torch.stack(losses).mean())


@torch.no_grad()
def write(model: Writer, n: int, random: torch.Generator) -> Tensor:
    """Texts (n, LENGTH + 1), one word after the other."""
    x = torch.randint(WORDS, (n, 1), generator=random)
    for _ in range(LENGTH):
        x = torch.cat([x, torch.multinomial(model(x)[:, -1].softmax(-1), 1, generator=random)], 1)
    return x


def judge(p: Tensor, x: Tensor) -> float:
    """−log p under the chain, a word: the entropy rate for texts of its own."""
    return float(-p[x[:, :-1], x[:, 1:]].log().mean())


def measure(seed: int, budget: float) -> dict[str, Any]:
    """Losses of both models in training and in use."""
    steps = max(2, round(PRICE * budget))
    p = chain(torch.Generator().manual_seed(seed))
    columns: dict[str, list[Any]] = {"model": ["masked", "unmasked"], "training": [], "in_use": [], "written": []}
    for causal in (True, False):
        torch.manual_seed(seed)
        model, random = Writer(causal), torch.Generator().manual_seed(seed + 1)

        def loss(model: Writer = model, random: torch.Generator = random) -> Tensor:
            x = texts(p, BATCH, random)
            return cross_entropy(model(x[:, :-1]), x[:, 1:]).mean()

        course = train(model, loss, steps, RATE)
        tail = course[-max(1, steps // 10) :]
        test = torch.Generator().manual_seed(seed + 10_000)
        columns["training"].append(sum(tail) / len(tail))
        columns["in_use"].append(loss_from_left_to_right(model.eval(), texts(p, TESTED, test)))
        columns["written"].append(judge(p, write(model, TESTED, test)))
    return {**columns, "entropy_rate": entropy_rate(p), "steps": steps}


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    """Of one seed, by the names of the predictions."""
    training, in_use, written = (numbers[name] for name in ("training", "in_use", "written"))
    h = numbers["entropy_rate"]
    return {
        "training loss": training[1] / h,
        "worse at predicting": in_use[1] - in_use[0],
        "worse at writing": written[1] - written[0],
        "masked over entropy": in_use[0] - h,
    }


def needs(numbers: dict[str, Any]) -> float:
    """Seconds that a verdict takes, where the budget was too small for one."""
    return BUDGET if numbers["steps"] < LEAST else 0.0


def figure(numbers: dict[str, Any]) -> Figure:
    """Three bars for each model, and the entropy rate."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(7, 3.8), layout="constrained")
    axes = fig.subplots()
    names = {"training": "in training", "in_use": "left to right", "written": "of what it writes"}
    for place, (name, color) in enumerate(zip(names, ("0.75", "#2b6cd8", "#d66820"), strict=True)):
        axes.bar([i + 0.27 * (place - 1) for i in range(2)], numbers[name], 0.26, color=color, label=names[name])
    axes.axhline(numbers["entropy_rate"], color="0.3", ls=":", label="entropy rate")
    axes.set_xticks(range(2), numbers["model"])
    axes.set_title("−log p, nats per word", fontsize=11, loc="left", fontweight="bold")
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    return fig
