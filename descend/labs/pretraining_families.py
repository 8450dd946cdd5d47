"""BERT, GPT and T5: what a pre-training objective is good at is what it was asked in training.

    family   model             sees                       objective                       its own row
    BERT     encoder           T² pairs of positions      15% of the tokens hidden        a word in the middle
    GPT      decoder           T (T + 1) / 2 pairs        the next token                  the next word
    T5       both              T² and T (T + 1) / 2       spans behind sentinels          several words in the middle

Three models of the same layers read the same texts in the same number of steps: two layers of an encoder, two of a
decoder, two of each (twice the parameters for nearly the same work, since a word passes through one of the two). Every
row asks all three for −log p of hidden words, in nats per word:

    middle   x_t from all other words        BERT: one [MASK]       GPT: from the left only    T5: a span of one
    next     x_t from the words before it    BERT: [MASK] behind    GPT: as trained            T5: a sentinel behind
    span     x_t and x_{t+1} from the others, told how many they are
             BERT hides both and guesses each alone; GPT goes from left to right without what follows; T5 reads both
             sides and says one after the other

The texts are a Markov chain, of which the best possible value of every row is known: p(x_t | both sides) is
P[a, x] P[x, b] / P²[a, b]. MF 20.8.1 and 36.10 and VOM 13.8 state the comparison in words; their rows for instructions
and for human preferences need other objectives and are not measured here.

Systems: pretraining-family-comparison
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor, nn

from descend.data.text.spans import SpanCorruption, corrupt
from descend.engine.minimise import minimise
from descend.labs._evidence import Above, AtMost
from descend.losses.classification import cross_entropy
from descend.models.t5 import T5, Parts, T5Config, feed_forward, initialize
from descend.nn.add_norm import Stack
from descend.nn.attention.relative_bias import CausalRelativeBias, RelativeBias
from descend.ops.attention.dot_product import additive, causal_mask
from descend.ops.teacher_forcing import shift_right
from descend.optim.rules import Adam
from descend.optim.schedules import Cosine

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("MF-B.63", "MF-B.107", "VOM-B.102")
PRINTED = (
    "BERT (masked words, bidirectional) is for understanding, GPT (causal) for generation, T5 (span"
    " corruption) for all tasks."
)
CLAIM = (
    "BERT sees T² pairs of positions and GPT T (T + 1) / 2. Trained on the same texts, masked language modelling is"
    " best at a word in the middle, causal language modelling at the next word, and span corruption at several words"
    " in the middle."
)
PREDICTIONS = (
    AtMost("pairs off", 0, "Pairs of positions that differ from T² and T (T + 1) / 2."),
    Above(
        "own row won by",
        3,
        "The least margin of a family in its own row, in standard errors; refuted where one loses by 3.",
        refuted=-3,
    ),
)
CONTROLS = (
    AtMost(
        "over the best possible",
        0.2,
        "Nats by which a family is above the best possible in its own row, the worst: else it is not trained.",
    ),
)
SCOPE = "Markov chains over six words, models of width 32. The rows for instructions and preferences are not measured."
WORDS, LENGTH, HIDDEN = 6, 12, 2
WIDTH, HEADS, RATE = 32, 2, 8e-3
MASK, FIRST, VOCAB = 10, 19, 20  # sentinels are 19, 18, …
BATCH, TESTS = 64, 8000
BUDGET = 44.0
PRICE = 27  # steps of each family that a second of one core buys
ROWS, FAMILIES = ("middle", "next", "span"), ("bert", "gpt", "t5")
CORRUPTION = SpanCorruption(1 / 3, 2.0)  # 4 of 12 words in 2 spans


def chain(random: torch.Generator) -> Tensor:
    """P (words, words): every word has four successors, likely in different degrees."""
    p = torch.zeros(WORDS, WORDS, dtype=torch.float64)
    for row in p:
        row[torch.randperm(WORDS, generator=random)[:3]] = torch.tensor([0.6, 0.3, 0.1], dtype=torch.float64)
    return 0.98 * p + 0.02 / WORDS


def texts(p: Tensor, n: int, random: torch.Generator) -> Tensor:
    """(n, LENGTH), each beginning with any word."""
    found = [torch.randint(WORDS, (n,), generator=random)]
    for _ in range(LENGTH - 1):
        found.append(torch.multinomial(p[found[-1]], 1, generator=random).squeeze(1))
    return torch.stack(found, 1)


class OneStack(nn.Module):
    """tokens (b, t) -> logits (b, t, v): layers of T5's encoder; with a causal bias no word sees a later one."""

    def __init__(self, bias: RelativeBias):
        super().__init__()
        parts = Parts(WIDTH, HEADS, WIDTH // HEADS, 0.0, 1e-6)
        self.embed, self.bias = nn.Embedding(VOCAB, WIDTH), bias
        layers = (parts.encoder_layer(feed_forward("relu", WIDTH, 4 * WIDTH, 0.0)) for _ in range(2))
        self.stack, self.head = Stack(layers, parts.last()), nn.Linear(WIDTH, VOCAB, bias=False)
        initialize(self, WIDTH, WIDTH, 4 * WIDTH, WIDTH // HEADS)

    def forward(self, tokens: Tensor) -> Tensor:
        t = tokens.shape[1]
        bias: Tensor = self.bias(t, t)
        if isinstance(self.bias, CausalRelativeBias):
            bias = bias + additive(causal_mask(t))
        return cast("Tensor", self.head(self.stack(self.embed(tokens), bias) * WIDTH**-0.5))


def models() -> dict[str, nn.Module]:
    """The same layers in each: two of an encoder, two of a decoder, two of both."""
    config = T5Config(
        VOCAB, WIDTH, 2, 2, HEADS, WIDTH // HEADS, 4 * WIDTH, tied=False, dropout=0.0, buckets=16, farthest=32
    )
    two, one = RelativeBias(HEADS, 16, 32), CausalRelativeBias(HEADS, 16, 32)
    return {"bert": OneStack(two), "gpt": OneStack(one), "t5": T5(config)}


def objective(family: str, model: nn.Module, x: Tensor, random: torch.Generator) -> Tensor:
    """The loss of one batch of texts (b, t), in nats a predicted word."""
    if family == "gpt":
        return cross_entropy(model(x[:, :-1]), x[:, 1:]).mean()
    if family == "bert":
        hidden = torch.rand(x.shape, generator=random) < 0.15
        hidden[:, 0] |= ~hidden.any(1)
        return cross_entropy(model(x.masked_fill(hidden, MASK))[hidden], x[hidden]).mean()
    gone = CORRUPTION.draw(torch.rand(x.shape, generator=random))
    shift = torch.randint(LENGTH, (len(x), 1), generator=random)  # spans anywhere, not always one at the end
    gone = gone.gather(1, (torch.arange(LENGTH) + shift) % LENGTH)
    source, y = corrupt(x, gone, FIRST, pad=MASK)
    real = y != MASK
    return cross_entropy(model(source, shift_right(y, MASK), source != MASK)[real], y[real]).mean()


@torch.no_grad()
def ask(family: str, model: nn.Module, row: str, x: Tensor, t: int) -> Tensor:
    """−log p (n) of the hidden words from place t on, a word."""
    k = HIDDEN if row == "span" else 1
    y = x[:, t : t + k]
    if family == "gpt":
        return cross_entropy(model(x[:, : t + k - 1])[:, t - 1 :, :WORDS], y).mean(1)
    end = t + 1 if row == "next" else LENGTH
    if family == "bert":
        seen = x[:, :end].clone()
        seen[:, t : t + k] = MASK
        return cross_entropy(model(seen)[:, t : t + k, :WORDS], y).mean(1)
    gone = torch.zeros(x[:, :end].shape, dtype=torch.bool)
    gone[:, t : t + k] = True
    source, target = corrupt(x[:, :end], gone, FIRST)
    return cross_entropy(model(source, shift_right(target, MASK))[:, 1 : 1 + k, :WORDS], y).mean(1)


def best(p: Tensor, row: str, x: Tensor, t: int) -> Tensor:
    """−log p (n) under the chain itself, a word."""
    k = HIDDEN if row == "span" else 1
    path = x[:, t - 1 : t + k] if row == "next" else x[:, t - 1 : t + k + 1]
    steps = p[path[:, :-1], path[:, 1:]].log().sum(1)
    around = torch.linalg.matrix_power(p, path.shape[1] - 1)[path[:, 0], path[:, -1]].log()
    return -(steps if row == "next" else steps - around) / k


@torch.no_grad()
def pairs_seen(look: Callable[[Tensor], Tensor], x: Tensor) -> int:
    """How many pairs (i, j) there are in which output i depends on word j: one word changed at a time."""
    changed = x.expand(LENGTH, -1).clone()
    changed.fill_diagonal_(MASK)
    return int(((look(changed) - look(x)).abs().amax(-1) > 1e-7).sum())


def measure(seed: int, budget: float) -> dict[str, Any]:
    """−log p a word for every row and family."""
    steps = max(10, round(PRICE * budget))
    random = torch.Generator().manual_seed(seed)
    p = chain(random)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        trained = models()
    for family, model in trained.items():
        train(family, model, p, steps, torch.Generator().manual_seed(seed + 1))
    x, t = texts(p, TESTS, random), LENGTH // 2
    numbers: dict[str, Any] = {"row": list(ROWS)}
    losses = {f: {row: ask(f, trained[f].eval(), row, x, t).double() for row in ROWS} for f in FAMILIES}
    numbers["best_possible"] = [float(best(p, row, x, t).mean()) for row in ROWS]
    numbers |= {family: [float(losses[family][row].mean()) for row in ROWS] for family in FAMILIES}
    # The three are asked about the same texts, so the error of a difference is that of the pairs.
    numbers["errors"] = {
        f"{own} against {other}": float((losses[other][row] - losses[own][row]).std() / TESTS**0.5)
        for row, own in zip(ROWS, FAMILIES, strict=True)
        for other in FAMILIES
        if other != own
    }
    facts = {f"{family}_parameters": sum(q.numel() for q in model.parameters()) for family, model in trained.items()}
    pairs = {f"{f}_pairs": pairs_seen(trained[f], x[:1]) for f in ("bert", "gpt")}
    return numbers | facts | pairs | {"length": LENGTH, "steps": steps}


def train(family: str, model: nn.Module, p: Tensor, steps: int, random: torch.Generator) -> None:
    """The same texts for every family: they are drawn first, with a generator of their own."""
    stream = iter(texts(p, steps * BATCH, random).view(steps, BATCH, LENGTH))
    schedule = Cosine(warmup=3 * steps // 10, floor=0.0)
    rule = Adam(RATE, (0.9, 0.98))
    minimise(model, lambda: objective(family, model, next(stream), random), steps, rule, schedule, clip=1.0)


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    """Of one seed, by the names of the predictions."""
    t = numbers["length"]
    left = [numbers[family][i] - numbers["best_possible"][i] for i, family in enumerate(FAMILIES)]
    margins = [
        (numbers[other][i] - numbers[own][i]) / numbers["errors"][f"{own} against {other}"]
        for i, own in enumerate(FAMILIES)
        for other in FAMILIES
        if other != own
    ]
    return {
        "pairs off": abs(numbers["bert_pairs"] - t * t) + abs(numbers["gpt_pairs"] - t * (t + 1) // 2),
        "own row won by": min(margins),
        "over the best possible": max(left),
    }


def figure(numbers: dict[str, Any]) -> Figure:
    """The rows side by side, three bars each, and what is possible."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(8, 4), layout="constrained")
    axes = fig.subplots()
    colours = {"bert": "#2b6cd8", "gpt": "#d66820", "t5": "#3b8f4a"}
    for i, family in enumerate(FAMILIES):
        places = [row + 0.26 * (i - 1) for row in range(len(ROWS))]
        axes.bar(places, numbers[family], 0.24, color=colours[family], label=family.upper())
    for row, value in enumerate(numbers["best_possible"]):
        axes.plot([row - 0.4, row + 0.4], [value, value], color="0.3", ls=":", label="" if row else "best possible")
    axes.set_xticks(range(len(ROWS)), ["a word in the middle", "the next word", "two words in the middle"])
    axes.set_ylabel("−log p, nats per word")
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    return fig
