"""Deep autoencoder, logistic PCA and PCA on three seeds, and what the verdict follows."""

from __future__ import annotations

from functools import partial

import pytest

from descend.labs import autoencoder_comparison
from descend.labs._evidence import judge_seed
from descend.labs.autoencoder_comparison import figure, measure

verdict = partial(judge_seed, autoencoder_comparison)


@pytest.mark.system("linear-autoencoder-is-pca", "comparison", "images")
@pytest.mark.system("deep-autoencoder", "beats-pca")
@pytest.mark.parametrize("seed", range(3))
def test_the_claim(seed: int) -> None:
    numbers = measure(seed, budget=1.5)
    assert verdict(numbers) == "supported", numbers
    drawn = figure(numbers)
    assert len(drawn.axes) == 16  # four images, each with three reconstructions
    assert verdict({**numbers, "steps": 10}) == "open"
    assert verdict({**numbers, "error": numbers["error"][::-1]}) == "refuted"
    assert verdict({**numbers, "cross_entropy": [1.0, 3.0, 2.0]}) == "refuted"
