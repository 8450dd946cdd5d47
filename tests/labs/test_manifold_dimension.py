"""As many codes as factors, on three seeds, and what the verdict follows."""

from __future__ import annotations

from functools import partial

import pytest

from descend.labs import manifold_dimension
from descend.labs._evidence import judge_seed
from descend.labs.manifold_dimension import figure, measure

verdict = partial(judge_seed, manifold_dimension)

SLUG = "manifold-hypothesis"


@pytest.mark.system(SLUG)
@pytest.mark.system(SLUG, "autoencoder", "neighbours")
@pytest.mark.parametrize("seed", range(3))
def test_the_claim(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifold_dimension, "STARTS", 1)
    numbers = measure(seed, budget=1.5)
    assert verdict(numbers) == "supported", numbers
    assert numbers["linear"] > numbers["factors"]  # PCA needs more where the manifold is curved
    assert len(figure(numbers).axes) == 1
    assert verdict({**numbers, "steps": 10}) == "open"
    assert verdict({**numbers, "lost": [0.5, 0.4, 0.3, 0.2, 0.1]}) == "refuted"
    assert verdict({**numbers, "neighbours": 5.0}) == "refuted"
