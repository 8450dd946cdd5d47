from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest
import torch

from descend.labs import next_sentence_ablation
from descend.labs._evidence import judge_seed
from descend.labs.next_sentence_ablation import (
    CLS,
    FIRST,
    LENGTH,
    SEP,
    TOPICS,
    WORDS,
    Topics,
    figure,
    join,
    measure,
    pretrain,
)

verdict = partial(judge_seed, next_sentence_ablation)

SLUG = "roberta"
EQUAL: dict[str, Any] = {
    "pre-trained": ["masked", "masked and next", "scratch"], "steps": 700, "tested": 1000,
    "topic": [0.9, 0.9, 0.6], "same": [0.8, 0.81, 0.6],
}  # fmt: skip


def test_a_second_sentence_goes_on_or_is_of_another_topic() -> None:
    topics = Topics(0)
    first, second, topic, other = topics.draw(300)
    assert first.shape == second.shape == (300, LENGTH)
    assert topic.max() < TOPICS
    assert first.max() < WORDS
    words = torch.cat([first[:, -1:], second], 1)
    possible = topics.p[topic[:, None], words[:, :-1], words[:, 1:]] > 0
    assert possible[other == 0].all()
    assert possible[other == 1].all(1).double().mean() < 0.2, "few could be of the same topic too"


def test_pairs_have_marks_and_segments() -> None:
    first, second = torch.zeros(2, LENGTH).long(), torch.ones(2, LENGTH).long()
    x, segments = join(first, second)
    assert x[0].tolist() == [CLS, *[FIRST] * LENGTH, SEP, *[FIRST + 1] * LENGTH, SEP]
    assert segments[0].tolist() == [0] * (LENGTH + 2) + [1] * (LENGTH + 1)
    assert join(first)[0].shape == (2, LENGTH + 2)


@pytest.mark.system(SLUG)
def test_without_its_weight_the_next_sentence_head_learns_nothing() -> None:
    """λ = 0 is masked language modelling alone: the head that tells what follows stays where it began."""
    torch.manual_seed(0)
    alone, both = (pretrain(weight, 3, 0).state_dict() for weight in (0.0, 1.0))
    start = pretrain(0.0, 1, 0).state_dict()
    assert torch.allclose(alone["follows.weight"], start["follows.weight"], atol=1e-3)
    assert not torch.allclose(both["follows.weight"], start["follows.weight"], atol=1e-3)


@pytest.mark.system(SLUG)
def test_a_short_measurement() -> None:
    numbers = measure(seed=0, budget=0.1)
    assert verdict(numbers) == "open"
    assert len(figure(numbers).axes[0].patches) == 6
    json.dumps(numbers)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({}, "supported"),
        ({"same": [0.9, 0.8, 0.6]}, "supported"),
        ({"same": [0.8, 0.9, 0.6]}, "refuted"),
        ({"topic": [0.7, 0.9, 0.6]}, "refuted"),
        ({"steps": 100}, "open"),
        ({"topic": [0.9, 0.9, 0.9], "same": [0.6, 0.62, 0.6]}, "open"),
    ],
)
def test_the_verdict_reads_every_part(change: dict[str, Any], said: str) -> None:
    assert verdict({**EQUAL, **change}) == said
