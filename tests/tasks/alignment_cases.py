"""Small cases of the tasks that learn from preferences, for `cases.py`."""

from __future__ import annotations

import copy
from collections.abc import Callable

import torch
from torch import Tensor

from descend.contracts import Batch, Task
from descend.models.gpt2 import GPT2, GPT2Config, GPT2ForSequenceClassification
from descend.tasks.chain import Chain, Link
from descend.tasks.direct_preference import DirectPreference
from descend.tasks.language import Language
from descend.tasks.reward import RankResponses

B = 8
TINY = GPT2Config(vocab=11, context=12, width=8, depth=1, heads=2, dropout=0.0)


def responses(count: int) -> Batch:
    """Texts of different lengths, and of fewer responses in some rows where there are more than two."""
    tokens = torch.randint(1, TINY.vocab, (B, count, 9))
    last = 4 + torch.randint(5, (B, count, 1))
    place = torch.arange(9)
    written = (place > 1) & (place <= last)
    if count > 2:
        written[::3, -1] = False
    return {"tokens": tokens.masked_fill(place > last, 0), "written": written}


def scorer() -> GPT2ForSequenceClassification:
    """A reward model whose rewards differ."""
    found = GPT2ForSequenceClassification(TINY).double()
    torch.nn.init.normal_(found.score.weight)
    return found


def rank() -> tuple[Task, Batch]:
    return RankResponses(scorer()), responses(3)


def prefer() -> tuple[Task, Batch]:
    return DirectPreference(GPT2(TINY).double(), GPT2(TINY).double(), 0.5, anchor=0.3), responses(2)


def chain() -> tuple[Task, Batch]:
    """Its second stage, which begins with a copy of the first one's model."""
    language = GPT2(TINY).double()
    reference = copy.deepcopy(language)
    links = [
        Link("pretrain", "language", Language(language)),
        Link("prefer", "policy", DirectPreference(language, reference, 0.5)),
    ]
    parts = {"language": language, "policy": language, "reference": reference}
    stage: Tensor = torch.ones(B, dtype=torch.long)
    return Chain(parts, links), {**responses(2), "stage": stage}


CASES: dict[str, Callable[[], tuple[Task, Batch]]] = {
    "Chain": chain,
    "DirectPreference": prefer,
    "RankResponses": rank,
}
