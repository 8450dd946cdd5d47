"""Is next-sentence prediction worth its loss? The same encoder pre-trained with and without it, then fine-tuned.

    pre-train    L_MLM + λ L_NSP,   λ = 1 (BERT) and λ = 0 (RoBERTa), the same pairs of sentences and masks
    topic        one sentence, which of three topics?              fine-tuned on a few labelled examples
    same         two sentences, of one topic or of two?           fine-tuned on a few labelled examples
    scratch      the same two tasks from random weights

Documents are Markov chains over 6 words, one chain a topic; the second sentence of a pair continues the same document
or comes from another topic. MF 34 and VOM 13.3.2 report that RoBERTa drops the loss and gets better results. The second
task is nearly what the loss trains: if it helps anywhere, then there. Chosen on seed 10, so that masked words are
learned in the budget and scratch is not at its ceiling: few words, two successors each, the number of labels. What is
found holds at this size: a few hundred steps, in which the second loss says more about a whole sentence than the first.

Systems: roberta
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from descend.contracts import Batch
from descend.labs._evidence import Above, AtMost
from descend.labs._train import train
from descend.losses.classification import cross_entropy
from descend.models.bert import BertConfig, BertForPreTraining, BertForSequenceClassification
from descend.tasks.masked import MaskedAndNext
from descend.weights.labels import Labels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("VOM-B.73", "MF-B.88")
PRINTED = "RoBERTa drops next-sentence prediction, trains with masked words only, and gets better results."
CLAIM = (
    "Dropping next-sentence prediction costs nothing: pre-trained on masked words alone, an encoder does downstream at"
    " least as well as with both losses, on a task of single sentences and on one of pairs."
)
PREDICTIONS = (
    AtMost(
        "behind",
        3,
        "How far masked words alone are behind both losses, in standard errors, the worse of two tasks;"
        " more refutes it.",
    ),
)
CONTROLS = (
    Above(
        "useful",
        3,
        "How far the better pre-training is ahead of scratch, in standard errors, on the better task.",
    ),
)
SCOPE = (
    "Markov chains over six words, an encoder of width 32, a few hundred steps; sizes were chosen"
    " on seed 10. RoBERTa's scale is out of reach here."
)
TOPICS, WORDS, LENGTH = 3, 6, 7
CLS, SEP, MASK, FIRST = 1, 2, 3, 4  # 0 is padding; then the words
TESTED, BATCH, RATE = 1000, 64, 8e-3
LABELLED = {"topic": 16, "same": 48}  # examples to fine-tune on
CONFIG = BertConfig(FIRST + WORDS, 2 * LENGTH + 3, width=32, depth=2, heads=2, hidden=64, dropout=0.0)
TASKS = {"topic": Labels(tuple("abc")), "same": Labels(("same", "other"))}
WAYS = {"masked": 0.0, "masked and next": 1.0}
BUDGET = 22.0
PRICE = 32  # steps of both pre-trainings that a second of one core buys, fine-tuning included
LEAST = 300  # steps below which nothing is said


class Topics:
    """A Markov chain for each topic: every word has two successors, one likelier."""

    def __init__(self, seed: int):
        self.random = torch.Generator().manual_seed(seed)
        self.p = torch.zeros(TOPICS, WORDS, WORDS)
        for row in self.p.flatten(0, 1):
            row[torch.randperm(WORDS, generator=self.random)[:2]] = torch.tensor([0.8, 0.2])

    def write(self, topic: Tensor, after: Tensor) -> Tensor:
        """Sentences (n, t) of these topics (n) that go on after these words (n)."""
        words = [after]
        for _ in range(LENGTH):
            words.append(torch.multinomial(self.p[topic, words[-1]], 1, generator=self.random).squeeze(1))
        return torch.stack(words[1:], 1)

    def draw(self, n: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """First and second sentences (n, t), topics of the first (n), 0 where the second continues it, else 1 (n)."""
        topic, start = (torch.randint(k, (n,), generator=self.random) for k in (TOPICS, WORDS))
        other = torch.randint(2, (n,), generator=self.random)
        shift = torch.randint(1, TOPICS, (n,), generator=self.random)
        first = self.write(topic, start)
        return first, self.write((topic + other * shift) % TOPICS, first[:, -1]), topic, other


def join(first: Tensor, second: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """[CLS] A [SEP], or [CLS] A [SEP] B [SEP], and the segments, both (n, t)."""
    mark = lambda token: torch.full((len(first), 1), token)
    parts = [mark(CLS), first + FIRST, mark(SEP)]
    if second is not None:
        parts += [second + FIRST, mark(SEP)]
    x = torch.cat(parts, 1)
    return x, (torch.arange(x.shape[1]) > LENGTH + 1).long().expand_as(x)


def pretrain(weight: float, steps: int, seed: int) -> BertForPreTraining:
    """L_MLM + λ L_NSP on fresh pairs with fresh masks."""
    torch.manual_seed(seed)
    model, topics = BertForPreTraining(CONFIG), Topics(seed)
    widen_start(model)
    task = MaskedAndNext(model, weight)

    def batch() -> Batch:
        first, second, _, other = topics.draw(BATCH)
        y, segments = join(first, second)
        at = (torch.rand(y.shape, generator=topics.random) < 0.15) & (y >= FIRST)
        return {"x": y.masked_fill(at, MASK), "y": y, "at": at, "segments": segments, "follows": other}

    train(model, lambda: task.loss(batch()).total(), steps, RATE)
    return model


def widen_start(model: nn.Module) -> None:
    """N(0, 1/n): the released N(0, 0.02²) is for wide models, a narrow one would start late."""
    for layer in model.modules():
        if isinstance(layer, nn.Linear):
            nn.init.normal_(layer.weight, std=layer.in_features**-0.5)


def fine_tune(base: BertForPreTraining | None, task: str, steps: int, seed: int) -> float:
    """Accuracy on new examples after a few labelled ones; from random weights where there is no base."""
    torch.manual_seed(seed + 1)
    model, topics = BertForSequenceClassification(replace(CONFIG, labels=TASKS[task])), Topics(seed)
    widen_start(model)
    if base is not None:
        known = model.state_dict()
        model.load_state_dict({**known, **{k: v for k, v in base.state_dict().items() if k in known}})
    topics.random.manual_seed(seed + 10_000)  # the same chains, other sentences

    def examples(n: int) -> tuple[Tensor, Tensor, Tensor]:
        first, second, topic, other = topics.draw(n)
        return (*join(first, second if task == "same" else None), other if task == "same" else topic)

    (x, segments, y), test = examples(LABELLED[task]), examples(TESTED)

    def loss() -> Tensor:
        rows = torch.randint(len(y), (BATCH,), generator=topics.random)
        return cross_entropy(model(x[rows], None, segments[rows]), y[rows]).mean()

    train(model, loss, steps, 2e-3)
    with torch.no_grad():
        return float((model(test[0], None, test[1]).argmax(-1) == test[2]).double().mean())


def measure(seed: int, budget: float) -> dict[str, Any]:
    """Downstream accuracy of both pre-trainings and of none."""
    steps = max(4, round(PRICE * budget))
    bases = {name: pretrain(weight, steps, seed) for name, weight in WAYS.items()}
    columns: dict[str, Any] = {"pre-trained": [*bases, "scratch"]}
    for task in TASKS:
        columns[task] = [fine_tune(base, task, max(2, steps // 6), seed) for base in (*bases.values(), None)]
    return {**columns, "steps": steps, "labelled": LABELLED, "tested": TESTED}


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    """Of one seed, by the names of the predictions."""
    n, rows = numbers["tested"], [numbers[task] for task in TASKS]
    return {
        "behind": max((both - alone) / max(standard_error(alone, both, n), 1e-9) for alone, both, _ in rows),
        "useful": max((max(row) - row[2]) / max(standard_error(max(row), row[2], n), 1e-9) for row in rows),
    }


def needs(numbers: dict[str, Any]) -> float:
    """Seconds that a verdict takes, where the budget was too small for one."""
    return BUDGET if numbers["steps"] < LEAST else 0.0


def standard_error(p: float, q: float, n: int) -> float:
    """Of the difference of two shares of n."""
    return math.sqrt((p * (1 - p) + q * (1 - q)) / n)


def figure(numbers: dict[str, Any]) -> Figure:
    """Bars for each pre-training and task."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(7, 3.8), layout="constrained")
    axes = fig.subplots()
    at = range(len(numbers["pre-trained"]))
    for shift, task, color in ((-0.2, "topic", "#2b6cd8"), (0.2, "same", "#d66820")):
        axes.bar([i + shift for i in at], numbers[task], 0.38, color=color, label=f"task: {task}")
    axes.set_xticks(list(at), numbers["pre-trained"])
    axes.set_ylim(0, 1.05)
    axes.set_title("accuracy after a few labelled examples", fontsize=11, loc="left", fontweight="bold")
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    return fig
