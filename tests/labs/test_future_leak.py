"""The leak of the future: what the mask hides, the chain's entropy, and what the verdict follows."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest
import torch

from descend.labs import future_leak
from descend.labs._evidence import judge_seed
from descend.labs.future_leak import (
    LENGTH,
    WORDS,
    Writer,
    chain,
    entropy_rate,
    figure,
    judge,
    loss_from_left_to_right,
    measure,
    texts,
)
from descend.losses.classification import cross_entropy
from tests.close import close

verdict = partial(judge_seed, future_leak)


@pytest.mark.system("causal-mask")
@pytest.mark.parametrize("causal", [True, False])
def test_only_the_masked_model_is_the_same_in_training_and_in_use(causal: bool) -> None:
    """With the mask, all places at once give the losses from left to right; without it they do not."""
    torch.manual_seed(0)
    model, p = Writer(causal), chain(torch.Generator().manual_seed(0))
    x = texts(p, 20, torch.Generator().manual_seed(1))
    with torch.no_grad():
        at_once = float(cross_entropy(model(x[:, :-1]), x[:, 1:]).mean())
    if causal:
        close(at_once, loss_from_left_to_right(model, x), loosen=10)  # means of other orders
    else:
        with torch.no_grad():
            moved = (model(x[:, :-1])[:, 0] - model(x[:, :1])[:, 0]).abs().max()
        assert moved > 1e-3, "the first place sees what comes after it"


def test_texts_cost_the_entropy_rate() -> None:
    """H = −Σ π P log P, and the mean of −log P over a long text comes near it."""
    p = chain(torch.Generator().manual_seed(3))
    close(p.sum(1), torch.ones(WORDS, dtype=torch.float64))
    x = texts(p, 4000, torch.Generator().manual_seed(4))
    assert x.shape == (4000, LENGTH + 1)
    assert judge(p, x) == pytest.approx(entropy_rate(p), abs=0.02)
    even = torch.full((WORDS, WORDS), 1 / WORDS, dtype=torch.float64)
    assert entropy_rate(even) == pytest.approx(torch.tensor(float(WORDS)).log().item())


def good() -> dict[str, Any]:
    return {"model": ["masked", "unmasked"], "training": [1.0, 0.1], "in_use": [1.0, 3.0], "written": [1.0, 2.5],
            "entropy_rate": 0.98, "steps": 300}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, "supported"),
        ({"steps": 20}, "open"),
        ({"in_use": [1.2, 3.0]}, "open"),  # the masked one has not learned yet
        ({"training": [1.0, 0.9]}, "refuted"),
        ({"in_use": [1.0, 1.2]}, "refuted"),
        ({"written": [1.0, 1.2]}, "refuted"),
    ],
)
def test_verdicts(change: dict[str, Any], expected: str) -> None:
    assert verdict({**good(), **change}) == expected


def test_numbers_and_figure() -> None:
    numbers = measure(seed=0, budget=0.05)
    assert verdict(numbers) == "open"
    json.dumps(numbers)
    assert len(figure(numbers).axes[0].patches) == 6
