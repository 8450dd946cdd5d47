"""Embed, then pool: what the module does, and the claim on three seeds."""

from __future__ import annotations

from functools import partial

import pytest
import torch

from descend.labs import stable_features
from descend.labs._evidence import judge_seed
from descend.labs.stable_features import draw_bars, figure, measure
from descend.nn.embed_pool import EmbedThenPool
from descend.seeds import generator
from tests.close import close

verdict = partial(judge_seed, stable_features)

SLUG = "embed-then-pool"


@pytest.mark.system(SLUG)
@pytest.mark.system(SLUG, "stages")
def test_two_stages() -> None:
    """More numbers than the input, then the strongest of each detector: by hand."""
    torch.manual_seed(0)
    model, x = EmbedThenPool(1, 9, 3, 2).double(), torch.randn(2, 1, 6, 6, dtype=torch.float64)
    embedded = model.embedding(x)
    patches = x.unfold(2, 3, 1).unfold(3, 3, 1).reshape(2, 4, 4, 9)
    assert model.embed.bias is not None
    by_hand = (patches @ model.embed.weight.view(9, 9).T + model.embed.bias).relu().permute(0, 3, 1, 2)
    close(embedded, by_hand)
    assert embedded[0].numel() > x[0].numel()
    close(model(x), by_hand.unfold(2, 2, 2).unfold(3, 2, 2).amax((-1, -2)).flatten(1))


@pytest.mark.system(SLUG)
@pytest.mark.system(SLUG, "stages", "invariant")
def test_a_shift_inside_a_region_changes_nothing() -> None:
    x, _, _ = draw_bars(50, generator(0))
    model = EmbedThenPool.with_patches(x, 8, 3, 1, generator(1))
    assert (model.embed.weight.flatten(1).norm(dim=1) - 1).abs().max() < 1e-5
    spot = torch.zeros(1, 1, 12, 12)
    spot[0, 0, 4:7, 4:7] = torch.rand(3, 3, generator=generator(2))
    close(model(spot.roll((2, 1), (2, 3))), model(spot))


@pytest.mark.system(SLUG)
@pytest.mark.system(SLUG, "invariant", "separable")
@pytest.mark.parametrize("seed", range(3))
def test_the_claim(seed: int) -> None:
    numbers = measure(seed, budget=1.0)
    assert verdict(numbers) == "supported", numbers
    assert numbers["accuracy"][0] < 0.6  # pixels: chance is a half
    assert len(figure(numbers).axes) == 2
    assert verdict({**numbers, "images": 10}) == "open"
    assert verdict({**numbers, "change": [0.9, 1.0, 0.8]}) == "refuted"
    assert verdict({**numbers, "accuracy": [0.9, 0.9, 0.95]}) == "refuted"
