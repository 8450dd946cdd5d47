from __future__ import annotations

import json
from typing import Any

import pytest
import torch

from descend.labs.foundation_model import (
    ASK,
    LABELS,
    LENGTH,
    LETTERS,
    STEPS,
    examples,
    figure,
    measure,
    new_model,
    pretrain,
    sentences,
    verdict,
)

SLUG = "foundation-model-pipeline"
GOOD: dict[str, Any] = {"steps": 200, "model": ["fine-tuned", "scratch", "base", "reward only"], "labels": 96,
                        "circle": [0.9, 0.3, 0.0, 0.2], "next": [0.9, 0.1, 0.3, 0.0]}  # fmt: skip


@pytest.mark.system(SLUG)
def test_sentences_go_round_their_circles() -> None:
    letters, circle, following = sentences(200, 10, torch.Generator().manual_seed(0))
    step = torch.tensor(STEPS)[circle]
    assert torch.equal((letters[:, -1] + step) % LETTERS, following)
    right = (letters[:, :-1] + step[:, None]) % LETTERS == letters[:, 1:]
    assert 0.85 < right.double().mean() < 1, "a few mistakes"
    x, y, task = examples(10, torch.Generator().manual_seed(0))
    assert x.shape == (10, LENGTH + 1)
    assert torch.equal(x[:, -1], ASK + task)
    assert ((y >= LABELS) == (task == 0)).all()


@pytest.mark.system(SLUG)
def test_pretraining_without_labels_learns_the_circles() -> None:
    model = new_model(0)
    first, *_, last = pretrain(model, 60, 0)
    assert last < first - 0.5


@pytest.mark.system(SLUG)
def test_the_whole_pipeline_runs_and_repeats() -> None:
    numbers = measure(seed=0, budget=0.4)
    assert verdict(numbers) == "open"
    assert numbers == measure(seed=0, budget=0.4)
    json.dumps(numbers)


def test_verdict_and_figure() -> None:
    assert verdict(GOOD) == "supported"
    assert verdict({**GOOD, "circle": [0.9, 0.85, 0.0, 0.2]}) == "refuted"
    assert verdict({**GOOD, "next": [0.9, 0.1, 0.85, 0.0]}) == "refuted"
    assert verdict({**GOOD, "circle": [0.9, 0.3, 0.0, 0.6]}) == "refuted"
    assert len(figure(GOOD).axes[0].patches) == 8
