"""A prior over tokens on three seeds, and what the verdict follows."""

from __future__ import annotations

from functools import partial

import pytest

from descend.labs import token_prior
from descend.labs._evidence import judge_seed
from descend.labs.token_prior import figure, measure

verdict = partial(judge_seed, token_prior)


@pytest.mark.system("vq-vae")
@pytest.mark.system("vq-vae", "prior", "usage")
@pytest.mark.parametrize("seed", range(3))
def test_the_claim(seed: int) -> None:
    numbers = measure(seed, budget=2.6)
    assert verdict(numbers) == "supported", {**numbers, "images": ""}
    assert len(figure(numbers).axes) == 20
    assert verdict({**numbers, "steps": 10}) == "open"
    assert verdict({**numbers, "distance": numbers["distance"][::-1]}) == "refuted"
    assert verdict({**numbers, "bits": [4.0, 3.0]}) == "refuted"
    assert verdict({**numbers, "in_use": 2.0}) == "refuted"
