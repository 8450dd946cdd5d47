"""What one attention head learns to look at: copying, agreement and coreference, at any distance.

    copy           "… *7 … COPY"          -> 7          the marked token
    agreement      "… I … you … VERB"     -> 1st person the subject's form (of 4), not that of the noun in between
    coreference    "… Ann … Bob … HE"     -> Bob        the name that fits the pronoun

The last token asks; the answer stands somewhere before it. One attention layer of one head, without positions, against
a recurrent network of the same size that reads the same texts: for attention every position is one step away, the
recurrent state must carry everything until it is asked. Measured: accuracy by distance, and the weight on the position
that holds the answer. In so few steps the recurrent network does not learn to carry it over any distance.

Systems: attention-head-and-layer-probes
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor, nn

from descend.labs._evidence import Above
from descend.labs._train import train
from descend.losses.classification import cross_entropy
from descend.metrics.attention_maps import mass_at
from descend.nn.attention.single_head import SingleHead

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("VOM-B.3",)
PRINTED = (
    "Self-attention learns syntactic relations, coreference, long-range dependency in one step, and"
    " copying with a weight near one."
)
CLAIM = (
    "One attention head learns to copy, to agree and to resolve pronouns equally well at every distance, and copies"
    " with more than 0.9 of its weight on the source; a recurrent network of the same size, trained the same way, is"
    " far worse."
)
PREDICTIONS = (
    Above(
        "worst accuracy",
        0.95,
        "Accuracy of the head at its worst distance, over the three tasks.",
    ),
    Above("weight on source", 0.9, "The weight on the position that is copied."),
    Above(
        "lead over recurrent",
        0.2,
        "The head's worst accuracy less the recurrent network's best.",
    ),
)
SCOPE = "Texts of 16 tokens, one head of width 32, a recurrent network of the same size, equally many steps."
FILLERS, NAMES, LENGTH, WIDTH, BATCH, RATE = 8, 4, 16, 32, 32, 1e-2
MARKED, SUBJECT, NOUN, HE_NAMES = FILLERS, 2 * FILLERS, 2 * FILLERS + 4, 2 * FILLERS + 8
SHE_NAMES = HE_NAMES + NAMES
COPY = SHE_NAMES + NAMES
VERB, HE, SHE, VOCAB = COPY + 1, COPY + 2, COPY + 3, COPY + 4
TASKS = {"copy": (COPY,), "agreement": (VERB,), "coreference": (HE, SHE)}
BINS = ((1, 4), (5, 8), (9, 12), (13, 15))
BUDGET = 4.0
PRICE = 100  # steps of both models, for each task, that a second of one core buys


def texts(n: int, task: str, random: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Tokens (n, t) whose last one asks for the task, the answers (n) and where they stand (n)."""

    def draw(first: int, count: int) -> Tensor:
        return torch.randint(first, first + count, (n,), generator=random)

    x = torch.randint(FILLERS, (n, LENGTH), generator=random)
    places = torch.rand(n, LENGTH - 1, generator=random).argsort(dim=1)[:, :5]
    special = torch.stack(
        [draw(MARKED, FILLERS), draw(SUBJECT, 4), draw(HE_NAMES, NAMES), draw(SHE_NAMES, NAMES), draw(NOUN, 4)], dim=1
    )
    x.scatter_(1, places, special)
    first, *more = TASKS[task]
    asked = draw(first - COPY, 1 + len(more))
    x[:, -1] = COPY + asked
    answer = special.gather(1, asked[:, None]).squeeze(1)
    answer = torch.where(asked == 0, answer - FILLERS, answer)  # the marked token without its mark
    return x, answer, places.gather(1, asked[:, None]).squeeze(1)


def small_embedding() -> nn.Embedding:
    """Embeddings that begin near 0: with large ones the head begins with a choice and has to unlearn it."""
    embedding = nn.Embedding(VOCAB, WIDTH)
    nn.init.normal_(embedding.weight, std=0.1)
    return embedding


class Head(nn.Module):
    """tokens (b, t) -> logits (b, v) from one attention head at the last position."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = small_embedding()
        self.head = SingleHead(WIDTH, WIDTH)
        self.out = nn.Linear(WIDTH, VOCAB)

    def weights(self, tokens: Tensor) -> Tensor:
        """A (b, t): where the last token looks. It does not look at itself."""
        return self.look(tokens)[1][:, -1]

    def look(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        before = torch.arange(tokens.shape[1]) < tokens.shape[1] - 1
        return self.head(self.embedding(tokens), before[None, None])

    def forward(self, tokens: Tensor) -> Tensor:
        return cast("Tensor", self.out(self.look(tokens)[0][:, -1]))


class Recurrent(nn.Module):
    """The same from the last state of h ← tanh(W x + U h)."""

    def __init__(self) -> None:
        super().__init__()
        hidden = 40  # 32 · 40 + 40 · 40 weights: as many as the head's 3 · 32 · 32
        self.embedding = small_embedding()
        self.rnn = nn.RNN(WIDTH, hidden, batch_first=True)
        self.out = nn.Linear(hidden, VOCAB)

    def forward(self, tokens: Tensor) -> Tensor:
        return cast("Tensor", self.out(self.rnn(self.embedding(tokens))[0][:, -1]))


def measure(seed: int, budget: float) -> dict[str, Any]:
    """Accuracy by distance of both models over all tasks, and the head's weight on the source by task."""
    steps = max(10, round(PRICE * budget))
    right: dict[str, list[Tensor]] = {"attention": [], "recurrent": []}
    away, on_source = [], {}
    for task in TASKS:
        x, y, source = texts(1500, task, torch.Generator().manual_seed(seed + 10_000))
        away.append(LENGTH - 1 - source)
        head, recurrent = train_model(Head, task, steps, seed), train_model(Recurrent, task, steps, seed)
        with torch.no_grad():
            on_source[task] = float(mass_at(cast("Head", head).weights(x), source).mean())
            for name, model in (("attention", head), ("recurrent", recurrent)):
                right[name].append((model(x).argmax(-1) == y).double())
    far = torch.cat(away)
    columns = {
        name: [float(torch.cat(hits)[(far >= low) & (far <= high)].mean()) for low, high in BINS]
        for name, hits in right.items()
    }
    labels = [f"{low}-{high}" for low, high in BINS]
    return {"distance": labels, **columns, "weight_on_source": on_source, "steps": steps}


def train_model(kind: type[Head | Recurrent], task: str, steps: int, seed: int) -> nn.Module:
    """A model after this many steps of one task."""
    torch.manual_seed(seed)
    random = torch.Generator().manual_seed(seed)
    model = kind()

    def loss() -> Tensor:
        x, y, _ = texts(BATCH, task, random)
        return cross_entropy(model(x), y).mean()

    train(model, loss, steps, RATE)
    return model


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    """Of one seed, by the names of the predictions."""
    worst = min(numbers["attention"])
    return {
        "worst accuracy": worst,
        "weight on source": numbers["weight_on_source"]["copy"],
        "lead over recurrent": worst - max(numbers["recurrent"]),
    }


def needs(numbers: dict[str, Any]) -> float:
    """Seconds that a verdict takes, where the budget was too small for one."""
    return BUDGET if numbers["steps"] < 150 else 0.0


def figure(numbers: dict[str, Any]) -> Figure:
    """Accuracy against distance, and the weights on the source."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(10, 3.8), layout="constrained")
    left, right = fig.subplots(1, 2)
    for name, color in (("attention", "#2b6cd8"), ("recurrent", "#d66820")):
        left.plot(numbers["distance"], numbers[name], "o-", color=color, label=name)
    left.set_xlabel("distance to the source")
    left.set_title("accuracy", fontsize=11, loc="left", fontweight="bold")
    left.legend(frameon=False)
    on_source = numbers["weight_on_source"]
    right.bar(list(on_source), list(on_source.values()), color="#2b6cd8", width=0.5)
    right.set_title("weight on the source", fontsize=11, loc="left", fontweight="bold")
    for axes in (left, right):
        axes.set_ylim(0, 1.05)
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    return fig
