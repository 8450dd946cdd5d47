"""Five uses of one language model: a text goes in, the answer comes out as text (DLD 6.1).

    f_θ(text, use) = answer         θ: one small GPT-2, trained on "TEXT USE ANSWER" with the loss on the answer alone

    sentiment    is the review good or bad?                 more good words than bad ones
    filter       keep or drop?                              drop what holds a forbidden word
    summary      the topic, in a word                       the topic word that comes most often
    extraction   the date of the order                      the word after "date"
    question     who owns the asked thing?                  "OWNER has THING", asked with THING

The texts are made by a small generator of words, all five kinds in one stream. Each use is compared with its trivial
answer: the one that is right most often when the text is not read.

Systems: language-model-applications
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from descend.labs._evidence import Above
from descend.labs._train import train
from descend.losses.classification import cross_entropy
from descend.models.gpt2 import GPT2, GPT2Config

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("S940-DLD.193",)
PRINTED = (
    "A model f_θ maps a text to an output; five uses are listed: sentiment, filtering,"
    " summarization, extraction, question answering."
)
CLAIM = (
    "One small language model, trained on texts followed by their answers, does sentiment, filtering, summarizing,"
    " extraction and question answering, each far better than the best answer that does not read the text."
)
PREDICTIONS = (
    Above(
        "lead",
        0.2,
        "Accuracy less that of the best answer that does not read the text, the least of the five uses.",
    ),
)
SCOPE = "Generated texts of 12 words and five uses, one small GPT-2; natural texts are out of reach here."
FILLERS = [f"word{n}" for n in range(8)]
GOOD, BAD = ["fine", "great", "lovely"], ["awful", "poor", "dull"]
FORBIDDEN = ["casino", "lottery"]
TOPICS = ["sport", "music", "food", "travel"]
DATES = ["monday", "tuesday", "friday", "sunday"]
OWNERS, THINGS = ["ann", "bob", "eve", "tom"], ["hat", "car", "dog", "cup"]
MARKS = ["date", "has", "good", "bad", "keep", "drop"]
USES = ["sentiment", "filter", "summary", "extraction", "question"]
WORDS = [*FILLERS, *GOOD, *BAD, *FORBIDDEN, *TOPICS, *DATES, *OWNERS, *THINGS, *MARKS, *(f"<{use}>" for use in USES)]
NUMBER = {word: n for n, word in enumerate(WORDS)}
LENGTH, BATCH, RATE = 12, 40, 5e-3
BUDGET = 5.0
PRICE = 100  # steps that a second of one core buys

Pick = Callable[[list[str]], str]


def sentiment(pick: Pick) -> tuple[list[str], str]:
    """An odd number of opinions, the majority decides."""
    opinions = [pick(GOOD + BAD) for _ in range(3)]
    return opinions, "good" if sum(word in GOOD for word in opinions) >= 2 else "bad"


def filtering(pick: Pick) -> tuple[list[str], str]:
    """A forbidden word in half of the texts."""
    word = pick([*FORBIDDEN, *FILLERS[:2]])
    return [word], "drop" if word in FORBIDDEN else "keep"


def summary(pick: Pick) -> tuple[list[str], str]:
    """The topic comes three times, another one once."""
    topic = pick(TOPICS)
    return [topic, topic, topic, pick(TOPICS)], topic


def extraction(pick: Pick) -> tuple[list[str], str]:
    """ "date monday" in one piece, and another day elsewhere."""
    day = pick(DATES)
    return [f"date {day}", pick(DATES)], day


def question(pick: Pick) -> tuple[list[str], str]:
    """Two owners; the last word of the text asks for one of their things."""
    first, second = pick(THINGS), pick(THINGS)
    owner = pick(OWNERS)
    return [f"{owner} has {first}", *([f"{pick(OWNERS)} has {second}"] if second != first else []), f"?{first}"], owner


MAKERS = (sentiment, filtering, summary, extraction, question)


def text(use: int, random: torch.Generator) -> tuple[list[int], int]:
    """The words of a text with its use, padded with fillers to LENGTH, and the answer."""

    def draw(n: int) -> int:
        return int(torch.randint(n, (1,), generator=random))

    parts, answer = MAKERS[use](lambda words: words[draw(len(words))])
    asked = [part[1:] for part in parts if part.startswith("?")]
    parts = [part for part in parts if not part.startswith("?")]
    room = LENGTH - 1 - len(asked) - sum(len(part.split()) for part in parts)
    parts += [FILLERS[draw(len(FILLERS))] for _ in range(room)]
    order = torch.randperm(len(parts), generator=random).tolist()
    words = [word for i in order for word in parts[i].split()] + asked + [f"<{USES[use]}>"]
    return [NUMBER[word] for word in words], NUMBER[answer]


def batch(n: int, random: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Texts (n, LENGTH), answers (n) and uses (n), the uses in turn."""
    uses = [i % len(USES) for i in range(n)]
    made = [text(use, random) for use in uses]
    return torch.tensor([x for x, _ in made]), torch.tensor([y for _, y in made]), torch.tensor(uses)


def measure(seed: int, budget: float) -> dict[str, Any]:
    """Accuracy of the model and of the trivial answer, for each use."""
    steps = max(5, round(PRICE * budget))
    torch.manual_seed(seed)
    model = GPT2(GPT2Config(vocab=len(WORDS), context=LENGTH, width=48, depth=2, heads=4, dropout=0.0))
    random = torch.Generator().manual_seed(seed)

    def loss() -> Tensor:
        x, y, _ = batch(BATCH, random)
        return cross_entropy(model(x)[:, -1], y).mean()

    train(model, loss, steps, RATE)
    x, y, uses = batch(1500, torch.Generator().manual_seed(seed + 10_000))
    with torch.no_grad():
        said = model(x)[:, -1].argmax(-1)
    columns: dict[str, Any] = {"use": USES, "accuracy": [], "trivial": []}
    for use in range(len(USES)):
        rows = uses == use
        columns["accuracy"].append(float((said[rows] == y[rows]).double().mean()))
        columns["trivial"].append(float(y[rows].bincount().max() / rows.sum()))
    return {**columns, "steps": steps}


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    """Of one seed, by the names of the predictions."""
    return {"lead": min(ours - trivial for ours, trivial in zip(numbers["accuracy"], numbers["trivial"], strict=True))}


def needs(numbers: dict[str, Any]) -> float:
    """Seconds that a verdict takes, where the budget was too small for one."""
    return BUDGET if numbers["steps"] < 200 else 0.0


def figure(numbers: dict[str, Any]) -> Figure:
    """Bars for each use: the model and the trivial answer."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(8, 3.8), layout="constrained")
    axes = fig.subplots()
    at = range(len(numbers["use"]))
    for shift, name, color in ((-0.2, "accuracy", "#2b6cd8"), (0.2, "trivial", "0.7")):
        label = "language model" if name == "accuracy" else "without reading"
        axes.bar([i + shift for i in at], numbers[name], 0.38, color=color, label=label)
    axes.set_xticks(list(at), numbers["use"])
    axes.set_ylim(0, 1.05)
    axes.set_title("correct answers", fontsize=11, loc="left", fontweight="bold")
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    return fig
