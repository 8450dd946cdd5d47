"""Labs of shrinking, of teachers and of maps: they run at a small budget; their effects are those of the numbers."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from descend.labs import beit_few_labels, pruned_lenet, query_peaks, rounded_language, rounded_training, taught_students
from descend.labs._digit_classes import read_digits
from descend.labs._evidence import NeedsMore, judge_seed

ROUNDED: dict[str, Any] = {
    "bits": [2, 3, 4, 8],
    "rounded": [0.3, 0.8, 0.95, 0.97],
    "rounded, trained on": [0.4, 0.8, 0.95, 0.975],
    "dense": 0.97,
    "dense, trained on": 0.98,
    "trained with 2 bits": 0.9,
    "steps": 800,
}
PRUNED: dict[str, Any] = {
    "sparsity": [0.5, 0.7, 0.8, 0.9, 0.95],
    "pruned": [0.98, 0.95, 0.8, 0.5, 0.3],
    "fine-tuned": [0.98, None, None, 0.975, 0.96],
    "dense": 0.97,
    "dense, trained on": 0.98,
    "steps": 400,
}
LANGUAGE: dict[str, Any] = {
    "form": ["32 bits", "8 bits", "8 bits, rows", "4 bits", "4 bits, rows"],
    "loss": [4.0, 4.001, 4.01, 4.03, 4.2],
    "bytes": [5, 4, 3, 2, 1],
    "steps": 600,
    "vocab": 1024,
}
STUDENTS: dict[str, Any] = {
    "teacher": [0.98] * 4,
    "twin": [0.8] * 4,
    "taught": [0.84, 0.84, 0.8, 0.84],
    "taught as printed": [0.8] * 4,
}
PEAKS: dict[str, Any] = {
    "steps": 1200, "found": 0.9, "inside": 0.8, "inside, mirrored": 0.1, "share of the image": 0.1
}  # fmt: skip


@pytest.mark.parametrize("lab", [rounded_training, pruned_lenet, taught_students, query_peaks, beit_few_labels])
def test_it_measures_and_says_what_it_needs(lab: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("STEPS", "TESTED"):
        monkeypatch.setattr(lab, name, 3, raising=False)
    if lab is pruned_lenet:  # too early a whole layer might be left without a weight
        with pytest.raises(NeedsMore):
            lab.measure(seed=0, budget=0.02)
        assert lab.figure(PRUNED).axes
        return
    numbers = lab.measure(seed=0, budget=0.02)
    assert lab.needs(numbers) > 1
    assert judge_seed(lab, numbers) == "open"
    assert {prediction.effect for prediction in lab.PREDICTIONS} <= lab.effects(numbers).keys()
    assert lab.figure(numbers).axes


@pytest.mark.parametrize(
    ("lab", "good", "change", "verdict"),
    [
        (rounded_training, ROUNDED, {}, "supported"),
        (rounded_training, ROUNDED, {"trained with 2 bits": 0.41}, "refuted"),
        (rounded_training, ROUNDED, {"rounded, trained on": [0.4, 0.8, 0.95, 0.9]}, "open"),
        (pruned_lenet, PRUNED, {}, "supported"),
        (pruned_lenet, PRUNED, {"dense": 0.99}, "refuted"),
        (rounded_language, LANGUAGE, {}, "supported"),
        (rounded_language, LANGUAGE, {"loss": [4.0, 4.02, 4.02, 4.03, 4.2]}, "refuted"),
        (rounded_language, LANGUAGE, {"loss": [4.0, 4.001, 4.01, 4.06, 4.2]}, "refuted"),
        (rounded_language, LANGUAGE, {"vocab": 100}, "open"),
        (taught_students, STUDENTS, {}, "supported"),
        (taught_students, STUDENTS, {"taught": [0.8] * 4}, "refuted"),
        (query_peaks, PEAKS, {}, "supported"),
        (query_peaks, PEAKS, {"inside": 0.3}, "refuted"),
        (query_peaks, PEAKS, {"found": 0.1}, "open"),
    ],
)
def test_the_numbers_judge(lab: Any, good: dict[str, Any], change: dict[str, Any], verdict: str) -> None:
    assert judge_seed(lab, {**good, **change}) == verdict


def test_the_cost_is_of_perplexity() -> None:
    effects = rounded_language.effects(LANGUAGE)
    assert effects["cost of 4 bits"] == pytest.approx(math.exp(4.03) / math.exp(4.0) - 1)


def test_digits_are_cut_alike_for_everyone() -> None:
    given, held = read_digits()
    assert (len(given.y), len(held.y)) == (1258, 539)
    large, _ = read_digits(32)
    assert large.x.shape == (1258, 1, 32, 32)
    assert torch.equal(large.y, given.y)
    assert torch.equal(given.draw(5, 1).y, given.draw(5, 1).y)


def test_scenes_have_an_object_in_each_half() -> None:
    x, truth = query_peaks.draw_scenes(20, torch.Generator().manual_seed(0))
    x0, y0, x1, y1 = truth.boxes.unbind(-1)
    assert x.shape == (20, 3, 64, 64)
    assert ((x0 >= 0) & (y0 >= 0) & (x1 <= 64) & (y1 <= 64)).all()
    assert (x1[:, 0] <= 32).all()
    assert (x0[:, 1] >= 32).all()
    inside = x[0, :, int(y0[0, 0]) : int(y1[0, 0]), int(x0[0, 0]) : int(x1[0, 0])]
    assert abs(float(inside.mean()) - (2.0 if truth.classes[0, 0] else -2.0)) < 0.2
