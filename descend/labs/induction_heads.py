"""Induction heads: after … A B … A predict B, which needs two layers of attention.

    a random text of p different tokens, repeated: position i ≥ p has the token of position i − p
    layer 1     a head looks at i − 1: every position learns which token came before it
    layer 2     a head looks for a position whose token BEFORE equals mine, i − p + 1, and copies what stands there

The period p changes from text to text, so "look p back" is no answer. One layer scores a key by its own token and its
distance alone and cannot know what came before it; it can only collect the tokens of the text. The models are attention
only, with a learned number for each distance up to 4 (with vectors for absolute positions two layers find another way:
the first fetches the PLACE of the earlier occurrence, the second looks one further).

    induction score        the weight from i on the tokens after all earlier occurrences, i − p + 1, i − 2p + 1, …
    previous-token score   the weight from i to i − 1;  both of the best head

MF 19.3.3 names induction heads; the test is that of Olsson et al. (2022).

Systems: induction-heads
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from descend.labs._evidence import Above, Below
from descend.labs._train import train
from descend.losses.classification import cross_entropy
from descend.nn.attention.maps import attention_maps
from descend.nn.attention.multi_head import Attention
from descend.nn.attention.relative_bias import ClippedRelativeBias

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("MF-B.44",)
PRINTED = "Induction heads copy: after ... A B ... A they predict B (the paper: in models of two layers or more)."
CLAIM = (
    "A model of two attention layers learns to continue repeated random sequences, with a head that looks at the"
    " token after the earlier occurrence; a model of one layer, trained the same way, does not."
)
PREDICTIONS = (
    Above("two layers right", 0.85, "Accuracy of two layers on the repeated part."),
    Above("score of two", 0.5, "Induction score of their best head."),
    Below(
        "one layer right",
        0.4,
        "Accuracy of one layer, trained the same way; as good as two would refute it.",
    ),
    Below("score of one", 0.5, "Induction score of its best head."),
)
SCOPE = "Attention-only models of width 48, 20 tokens, texts of 32 that repeat with a period of 6 to 16."
VOCAB, LENGTH, PERIODS = 20, 32, (6, 16)
WIDTH, HEADS, NEAR, BATCH, RATE = 48, 2, 4, 32, 4e-3
BUDGET = 6.0
PRICE = 90  # steps of both models that a second of one core buys


class AttentionOnly(nn.Module):
    """tokens (b, t) -> logits (b, t, v): x ← x + attention(norm(x)), no feed-forward part."""

    def __init__(self, depth: int):
        super().__init__()
        self.embedding = nn.Embedding(VOCAB, WIDTH)
        self.biases = nn.ModuleList([ClippedRelativeBias(HEADS, NEAR) for _ in range(depth)])
        self.norms = nn.ModuleList([nn.LayerNorm(WIDTH) for _ in range(depth)])
        self.layers = nn.ModuleList([Attention(WIDTH, HEADS) for _ in range(depth)])
        self.out = nn.Linear(WIDTH, VOCAB)

    def states(self, tokens: Tensor) -> list[Tensor]:
        """The residual stream before the first layer and after each: depth + 1 tensors (b, t, d)."""
        t = tokens.shape[1]
        found = [self.embedding(tokens)]
        for norm, layer, bias in zip(self.norms, self.layers, self.biases, strict=True):
            found.append(found[-1] + layer(norm(found[-1]), mask=bias(t, t), causal=True))
        return found

    def forward(self, tokens: Tensor) -> Tensor:
        return self.out(self.states(tokens)[-1])


def texts(n: int, random: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """x (n, t), y one token ahead, and the periods p (n, 1)."""
    some = torch.rand(n, VOCAB, generator=random).argsort(dim=1)
    low, high = PERIODS
    p = torch.randint(low, high + 1, (n, 1), generator=random)
    x = some.gather(1, torch.arange(LENGTH + 1) % p)
    return x[:, :-1], x[:, 1:], p


def mark_repeats(p: Tensor) -> Tensor:
    """(n, t): where the token has occurred before, so that the next one can be known."""
    return torch.arange(LENGTH) >= p


def train_model(depth: int, steps: int, seed: int) -> tuple[AttentionOnly, list[float]]:
    """A model after this many steps, and its losses where the answer can be known."""
    torch.manual_seed(seed)
    random = torch.Generator().manual_seed(seed)
    model = AttentionOnly(depth)

    def loss() -> Tensor:
        x, y, p = texts(BATCH, random)
        known = mark_repeats(p)
        return cross_entropy(model(x)[known], y[known]).mean()

    return model, train(model, loss, steps, RATE)


def head_scores(model: nn.Module, x: Tensor, p: Tensor) -> dict[str, list[list[float]]]:
    """Induction and previous-token score of each head of each layer."""
    known = mark_repeats(p)
    back = torch.arange(LENGTH)[:, None] - torch.arange(LENGTH)  # i − j
    sources = {"induction": (back + 1) % p[..., None] == 0, "previous": (back == 1).expand(len(x), -1, -1)}
    maps = attention_maps(model, x)
    return {
        name: [[float((a[:, h] * source).sum(-1)[known].mean()) for h in range(a.shape[1])] for a in maps.values()]
        for name, source in sources.items()
    }


def measure(seed: int, budget: float) -> dict[str, Any]:
    """Loss, accuracy and head scores of one and of two layers."""
    steps = max(10, round(PRICE * budget))
    x, y, p = texts(512, torch.Generator().manual_seed(seed + 10_000))
    known = mark_repeats(p)
    columns: dict[str, list[float]] = {"layers": [1, 2]}
    curves, heads = [], []
    for depth in (1, 2):
        model, curve = train_model(depth, steps, seed)
        with torch.no_grad():
            logits = model(x)[known]
        scores = head_scores(model, x, p)
        row = {
            "loss": cross_entropy(logits, y[known]).mean(),
            "accuracy": (logits.argmax(-1) == y[known]).double().mean(),
            "induction": max(score for layer in scores["induction"] for score in layer),
            "previous": max(score for layer in scores["previous"] for score in layer),
        }
        for name, value in row.items():
            columns.setdefault(name, []).append(float(value))
        curves.append(curve)
        heads.append(scores)
    facts = {"steps": steps, "chance": 1 / VOCAB, "known_share": float(known.double().mean())}
    return {**columns, **facts, "curves": curves, "heads": heads}


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    """Of one seed, by the names of the predictions."""
    (one, two), (score_one, score_two) = numbers["accuracy"], numbers["induction"]
    return {"two layers right": two, "score of two": score_two, "one layer right": one, "score of one": score_one}


def needs(numbers: dict[str, Any]) -> float:
    """Seconds that a verdict takes, where the budget was too small for one."""
    return (
        BUDGET
        if numbers["steps"] < 200
        or (numbers["steps"] < 1000 and (numbers["accuracy"][1] <= 0.85 or numbers["induction"][1] <= 0.5))
        else 0.0
    )


def figure(numbers: dict[str, Any]) -> Figure:
    """The losses of both models, and the scores of every head."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(11, 4), layout="constrained")
    left, right = fig.subplots(1, 2)
    for depth, curve, color in zip(numbers["layers"], numbers["curves"], ("#d66820", "#2b6cd8"), strict=True):
        left.plot(smooth(curve), color=color, label=f"{depth} layer{'s' * (depth > 1)}")
    left.set_title("loss where the next token can be known", fontsize=11, loc="left", fontweight="bold")
    left.set_xlabel("steps")
    left.legend(frameon=False)
    names, scores = [], {"induction": [], "previous": []}  # type: ignore[var-annotated]
    for depth, found in zip(numbers["layers"], numbers["heads"], strict=True):
        for layer in range(depth):
            for head in range(HEADS):
                names.append(f"{depth}L {layer + 1}.{head + 1}")
                for kind in scores:
                    scores[kind].append(found[kind][layer][head])
    at = range(len(names))
    right.bar([i - 0.2 for i in at], scores["induction"], 0.4, color="#2b6cd8", label="token after the earlier one")
    right.bar([i + 0.2 for i in at], scores["previous"], 0.4, color="0.7", label="token before")
    right.set_xticks(list(at), names)
    right.set_title("where each head looks", fontsize=11, loc="left", fontweight="bold")
    right.legend(frameon=False)
    for axes in (left, right):
        axes.set_ylim(bottom=0)
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    return fig


def smooth(curve: list[float], window: int = 10) -> list[float]:
    """Means of neighbouring steps."""
    edges = range(0, len(curve) + 1, window)
    return [sum(curve[a:b]) / (b - a) for a, b in pairwise(edges)]
