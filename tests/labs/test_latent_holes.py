"""Holes in a latent space: the claim on three seeds, and what the verdict follows."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from descend.labs import latent_holes
from descend.labs._evidence import judge_seed
from descend.labs.latent_holes import figure, measure

verdict = partial(judge_seed, latent_holes)

SLUG = "irregular-latent-space"
GOOD = {"model": ["autoencoder", "without KL", "VAE"], "distance": [3.0, 1.6, 1.3], "coverage": [0.9, 0.01, 0.5],
        "roughness": [2.0, 1.1, 0.7], "spread": [3.0, 0.01, 0.2], "error": [2.4, 2.3, 2.1], "start_spread": 10.0,
        "steps": 200}  # fmt: skip


@pytest.mark.system(SLUG)
@pytest.mark.system(SLUG, "samples", "continuity", "completeness", "without-kl")
@pytest.mark.parametrize("seed", range(3))
def test_the_claim(seed: int) -> None:
    numbers = measure(seed, budget=1.9)
    assert verdict(numbers) == "supported", numbers
    assert numbers["distance"][2] < 1.4 * numbers["real"]  # nearly as near as real images are to each other
    assert max(numbers["walk"]) < 2


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, "supported"),
        ({"steps": 10}, "open"),
        ({"distance": [3.0, 1.2, 1.3]}, "refuted"),
        ({"coverage": [0.9, 0.4, 0.5]}, "refuted"),
        ({"spread": [3.0, 0.3, 0.3]}, "refuted"),
        ({"roughness": [0.5, 1.1, 0.7]}, "refuted"),
    ],
)
def test_verdicts(change: dict[str, Any], expected: str) -> None:
    assert verdict({**GOOD, **change}) == expected
    assert len(figure(GOOD).axes) == 3
