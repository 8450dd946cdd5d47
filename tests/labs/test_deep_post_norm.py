"""Deep stacks: texts that are labelled right, gradients that shrink after the norms, and what the verdict follows."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch

from descend.labs import deep_post_norm
from descend.labs._evidence import judge_seed
from descend.labs.deep_post_norm import CLASSES, DEEP, STACKS, Finder, compare_gradients, figure, measure, texts
from descend.nn.encoder import EncoderBlock, PreNormBlock

verdict = partial(judge_seed, deep_post_norm)

SLUG = "add-and-norm-and-stack"


def test_texts_are_what_their_labels_say() -> None:
    x, y = texts(500, torch.Generator().manual_seed(0))
    assert torch.equal((x == 0).sum(1), y)
    assert y.bincount(minlength=CLASSES).min() > 200


@pytest.mark.system(SLUG)
def test_gradients_of_the_first_layer_vanish_after_norms_and_not_before() -> None:
    """Of 50 layers, at the start: ‖∂L/∂W‖ of the first over that of the last."""
    torch.manual_seed(0)
    post, pre = (
        compare_gradients(Finder(block, DEEP), torch.Generator().manual_seed(1))
        for block in (EncoderBlock, PreNormBlock)
    )
    assert 4 * post < pre


def good() -> dict[str, Any]:
    return {"stack": list(STACKS), "accuracy": [0.95, 0.52, 0.9], "steps": 200, "chance": 0.5}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, "supported"),
        ({"steps": 10}, "open"),
        ({"accuracy": [0.95, 0.5, 0.7]}, "open"),
        ({"accuracy": [0.7, 0.5, 0.9]}, "open"),
        ({"accuracy": [0.95, 0.7, 0.9]}, "open"),
        ({"accuracy": [0.95, 0.9, 0.9]}, "refuted"),
    ],
)
def test_verdicts(change: dict[str, Any], expected: str) -> None:
    assert verdict({**good(), **change}) == expected


def test_numbers_and_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    few = {name: (block, 2) for name, (block, _) in STACKS.items()}
    monkeypatch.setattr(deep_post_norm, "STACKS", few)
    numbers = measure(seed=0, budget=0.3)
    assert verdict(numbers) == "open"
    assert [len(curve) for curve in numbers["curves"]] == [2] * 3
    assert len(figure(numbers).axes[0].get_lines()) == 3
