"""A GAN of digits: the game is played by the engine, its judge judges, and what the verdict follows."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch

from descend.data.images.digits import load_digits_split
from descend.labs import digit_gan
from descend.labs._evidence import judge_seed
from descend.labs.digit_gan import PIXELS, Reader, figure, judge, measure

verdict = partial(judge_seed, digit_gan)


@pytest.mark.system("inception-v3", "substitute")
def test_a_small_reader_takes_the_place_of_inception() -> None:
    """Real images against others are near for its features; noise, and one image again and again, are far."""
    torch.manual_seed(0)
    reader, x = Reader(), 2 * load_digits_split().train.x.flatten(1) - 1
    near, _, _ = judge(reader, x[:500], x[500:])
    noise, _, _ = judge(reader, torch.rand(500, PIXELS) * 2 - 1, x[500:])
    one, classes, _ = judge(reader, x[:1].repeat(500, 1), x[500:])
    assert 10 * near < min(noise, one)
    assert classes == 1


def good() -> dict[str, Any]:
    return {"images": ["real", "generated", "untrained"], "distance": [0.1, 1.0, 20.0], "classes": [10, 9, 1],
            "sure": [0.97, 0.9, 0.5], "moves": 2000}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, "supported"),
        ({"moves": 10}, "open"),
        ({"distance": [0.1, 8.0, 20.0]}, "refuted"),
        ({"classes": [10, 3, 1]}, "refuted"),
        ({"sure": [0.97, 0.6, 0.5]}, "refuted"),
    ],
)
def test_verdicts(change: dict[str, Any], expected: str) -> None:
    assert verdict({**good(), **change}) == expected


@pytest.mark.system("gan")
def test_numbers_and_figure() -> None:
    numbers = measure(seed=0, budget=0.05)
    assert verdict(numbers) == "open"
    assert 0 < numbers["fake_score"] < 1
    assert numbers["distance"][0] < numbers["distance"][1]
    assert len(figure(numbers).axes) == 40
