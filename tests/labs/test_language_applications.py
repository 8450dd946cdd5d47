from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest
import torch

from descend.labs import language_applications
from descend.labs._evidence import judge_seed
from descend.labs.language_applications import (
    BAD,
    DATES,
    FORBIDDEN,
    GOOD,
    LENGTH,
    OWNERS,
    TOPICS,
    USES,
    WORDS,
    figure,
    measure,
    text,
)

verdict = partial(judge_seed, language_applications)

SLUG = "language-model-applications"
FINE: dict[str, Any] = {"steps": 300, "use": USES, "accuracy": [0.9] * 5, "trivial": [0.5, 0.5, 0.3, 0.3, 0.3]}


@pytest.mark.system("language-model-applications", "five-uses")
@pytest.mark.system(SLUG)
@pytest.mark.parametrize("use", range(len(USES)), ids=USES)
def test_the_text_holds_its_answer(use: int) -> None:
    random = torch.Generator().manual_seed(use)
    for _ in range(50):
        numbers, number = text(use, random)
        words, answer = [WORDS[n] for n in numbers], WORDS[number]
        assert len(words) == LENGTH
        assert words[-1] == f"<{USES[use]}>"
        if USES[use] == "sentiment":
            assert (answer == "good") == (sum(w in GOOD for w in words) > sum(w in BAD for w in words))
        if USES[use] == "filter":
            assert (answer == "drop") == any(w in FORBIDDEN for w in words)
        if USES[use] == "summary":
            assert answer == max(TOPICS, key=words.count)
        if USES[use] == "extraction":
            assert answer in DATES
            assert words[words.index("date") + 1] == answer
        if USES[use] == "question":
            assert answer in OWNERS
            assert words[words.index(words[-2]) - 2] == answer, "OWNER has THING … THING"


@pytest.mark.system("language-model-applications", "trained")
@pytest.mark.system(SLUG)
def test_the_model_reads() -> None:
    numbers = measure(seed=0, budget=1.2)
    ahead = [a - t for a, t in zip(numbers["accuracy"], numbers["trivial"], strict=True)]
    assert sum(gain > 0.2 for gain in ahead) >= 3, dict(zip(USES, ahead, strict=True))
    assert min(ahead) > -0.05, "none is worse than not reading"
    json.dumps(numbers)


def test_verdict_and_figure() -> None:
    assert verdict(FINE) == "supported"
    assert verdict({**FINE, "accuracy": [0.9, 0.55, 0.9, 0.9, 0.9]}) == "refuted"
    assert verdict({**FINE, "steps": 20}) == "open"
    assert len(figure(FINE).axes[0].patches) == 10
