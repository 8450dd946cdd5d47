"""Labs of the adversarial family: measured in little, and verdicts that can fail."""

from __future__ import annotations

import math
from typing import Any

import pytest

from descend.labs import gan_balance, mode_collapse, oracle_discriminator, shifted_distributions
from descend.labs._evidence import judge_seed

COLLAPSE: dict[str, Any] = {
    "game": ["plain", "minibatch", "conditional", "wgan-gp", "spectral"],
    "modes": [1, 8, 8, 8, 6],
    "steps": 900,
    "modes_of_data": 8,
    "modes_of_one_point": 1,
}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, "supported"),
        ({"steps": 10}, "open"),
        ({"modes": [6, 8, 8, 8, 8]}, "refuted"),
        ({"modes": [1, 8, 2, 8, 8]}, "refuted"),
        ({"modes": [1, 5, 8, 8, 8]}, "refuted"),
        ({"modes_of_one_point": 2}, "open"),
    ],
)
def test_collapse(change: dict[str, Any], expected: str) -> None:
    assert judge_seed(mode_collapse, {**COLLAPSE, **change}) == expected


@pytest.mark.system("mode-collapse")
@pytest.mark.system("mode-collapse", "counter")
def test_collapse_in_little() -> None:
    numbers = mode_collapse.measure(seed=0, budget=0.3)
    assert judge_seed(mode_collapse, numbers) == "open"
    assert (numbers["modes_of_data"], numbers["modes_of_one_point"]) == (8, 1)
    assert numbers["game"] == list(mode_collapse.VARIANTS)
    assert len(mode_collapse.figure(numbers).axes) == 2


ORACLE: dict[str, Any] = {
    "oracle_accuracy": [0.977, 0.841, 0.5],
    "trained_accuracy": [0.975, 0.84, 0.5],
    "trained_value": [-0.1, -0.7, -math.log(4)],
    "mean_difference": [0.01, 0.01, 0.01],
    "steps": 400,
}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, "supported"),
        ({"steps": 10}, "open"),
        ({"trained_accuracy": [0.9, 0.84, 0.5]}, "refuted"),
        ({"mean_difference": [0.01, 0.2, 0.01]}, "refuted"),
        ({"trained_value": [-0.1, -0.7, -1.0]}, "refuted"),
    ],
)
def test_oracle(change: dict[str, Any], expected: str) -> None:
    assert judge_seed(oracle_discriminator, {**ORACLE, **change}) == expected


@pytest.mark.system("optimal-discriminator")
def test_oracle_in_little() -> None:
    numbers = oracle_discriminator.measure(seed=0, budget=0.5)
    assert judge_seed(oracle_discriminator, numbers) == "open"
    for m, found in zip(numbers["m"], numbers["oracle_accuracy"], strict=True):
        assert found == pytest.approx(0.5 * (1 + math.erf(m / 2 / math.sqrt(2))), abs=1e-6)
    assert len(oracle_discriminator.figure(numbers).axes) == 2


SHIFTED: dict[str, Any] = {
    "theta": [0.0, 1.0, 2.0, 3.0],
    "exact_js": [0.0, math.log(2), math.log(2), math.log(2)],
    "exact_w1": [0.0, 1.0, 2.0, 3.0],
    "gap": [0.0, 0.95, 1.9, 2.9],
    "js_slope": [0.0, 0.5, 0.0, 0.0],
    "w1_slope": [0.2, 0.99, 0.99, 0.99],
    "steps": 400,
    "correlation": 0.95,
    "first_distance": 2.4,
    "last_distance": 0.1,
}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, "supported"),
        ({"steps": 10}, "open"),
        ({"js_slope": [0.0, 0.5, 0.3, 0.0]}, "refuted"),
        ({"w1_slope": [0.2, 1.0, 0.1, 1.0]}, "refuted"),
        ({"gap": [0.0, 1.0, 2.5, 3.0]}, "refuted"),
        ({"correlation": 0.5}, "refuted"),
        ({"last_distance": 2.0}, "refuted"),
    ],
)
def test_shifted(change: dict[str, Any], expected: str) -> None:
    assert judge_seed(shifted_distributions, {**SHIFTED, **change}) == expected


@pytest.mark.system("js-versus-wasserstein")
def test_shifted_in_little() -> None:
    numbers = shifted_distributions.measure(seed=0, budget=0.5)
    assert judge_seed(shifted_distributions, numbers) == "open"
    assert numbers["exact_w1"] == pytest.approx(numbers["theta"])
    assert numbers["exact_js"] == pytest.approx([min(theta, 1) * math.log(2) for theta in numbers["theta"]])
    assert len(shifted_distributions.figure(numbers).axes) == 2


BALANCE: dict[str, Any] = {
    "overlap": [0.6, 0.5, 0.1, 0.8, 0.0],
    "overlap_before": 0.0,
    "steps": 750,
    "growth": math.sqrt(1.01),
    "least_in_turns": 0.97,
    "most_in_turns": 1.03,
    "rising_d": 0.3,
    "rising_g": 0.5,
}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, "supported"),
        ({"steps": 10}, "open"),
        ({"growth": 1.004}, "refuted"),
        ({"most_in_turns": 1.2}, "refuted"),
        ({"rising_d": 0.0}, "refuted"),
        ({"overlap": [0.6, 0.5, 0.6, 0.7, 0.6]}, "refuted"),
        ({"overlap": [0.1, 0.5, 0.1, 0.8, 0.0]}, "refuted"),
    ],
)
def test_balance(change: dict[str, Any], expected: str) -> None:
    assert judge_seed(gan_balance, {**BALANCE, **change}) == expected


@pytest.mark.system("mode-collapse")
@pytest.mark.system("mode-collapse", "bilinear")
def test_balance_in_little() -> None:
    numbers = gan_balance.measure(seed=0, budget=0.2)
    assert judge_seed(gan_balance, numbers) == "open"
    assert numbers["growth"] == pytest.approx(math.sqrt(1 + gan_balance.ETA**2), rel=1e-12)
    assert len(gan_balance.figure(numbers).axes) == 3
