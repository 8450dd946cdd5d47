"""Layerwise training: the stack, its weights in deep networks, and the claim on three seeds."""

from __future__ import annotations

from functools import partial
from itertools import pairwise

import pytest
import torch

from descend.kinds.layerwise import start_autoencoder, start_encoder, train_layerwise
from descend.labs import greedy_layerwise
from descend.labs._evidence import judge_seed
from descend.labs.greedy_layerwise import figure, measure
from descend.losses.reconstruction import half_squared_error
from descend.models.autoencoder import Autoencoder, AutoencoderConfig
from descend.models.mlp import MLP, MLPConfig
from tests.close import close

verdict = partial(judge_seed, greedy_layerwise)

SLUG = "greedy-layerwise-training"


@pytest.mark.system(SLUG)
@pytest.mark.system(SLUG, "stack", "initial-weights")
def test_the_stack_is_the_start_of_deep_networks() -> None:
    """Each pair learned to copy the codes below it; encoder, decoder and classifier begin with its weights."""
    x = torch.rand(200, 8, generator=torch.Generator().manual_seed(0))
    torch.manual_seed(0)
    pairs = train_layerwise(x, (8, 6, 4), [torch.sigmoid, torch.tanh], steps=150, lr=1e-2, seed=0)
    h = x
    for pair, (n, m) in zip(pairs, pairwise((8, 6, 4)), strict=True):
        assert (pair.up.in_features, pair.up.out_features) == (n, m)
        mean = half_squared_error(h, h.mean(0).expand_as(h)).mean()
        assert half_squared_error(h, pair(h)).mean() < mean
        h = pair.encode(h)
    model = Autoencoder(AutoencoderConfig((8,), (6,), 4, "sigmoid", "tanh"))
    found = start_autoencoder(model, x, steps=20, lr=1e-2, seed=0)
    close(model.encode(x), found[1].encode(found[0].encode(x)))
    close(model.decoder[0].weight, found[1].back.weight)
    close(model.decoder[1].weight, found[0].back.weight)
    classifier = MLP(MLPConfig(8, (6, 4), 3, ("sigmoid", "tanh")))
    start_encoder(classifier.layers, pairs)
    close(classifier.trace(x)[1][1], h)
    assert classifier.layers[2].weight.shape == (3, 4)  # the head stays as it was


@pytest.mark.system(SLUG)
def test_one_linear_pair_is_a_linear_autoencoder() -> None:
    """Without a nonlinearity the first pair finds PCA's subspace."""
    random = torch.Generator().manual_seed(1)
    x = torch.randn(300, 5, generator=random) @ torch.randn(5, 5, generator=random)
    torch.manual_seed(1)
    [pair] = train_layerwise(x, (5, 2), [lambda z: z], steps=600, lr=3e-2, seed=1)
    lost = torch.linalg.eigvalsh(torch.cov(x.T, correction=0))[:3].sum()
    assert 2 * half_squared_error(x, pair(x)).mean() < 1.02 * lost


@pytest.mark.system(SLUG)
@pytest.mark.system(SLUG, "helps")
@pytest.mark.parametrize("seed", range(3))
def test_the_claim(seed: int) -> None:
    numbers = measure(seed, budget=2.2)
    assert verdict(numbers) == "supported", numbers
    assert numbers["gradient"][1] > 10 * numbers["gradient"][0]  # it reaches the first layer
    assert len(figure(numbers).axes) == 2
    assert verdict({**numbers, "steps": 10}) == "open"
    assert verdict({**numbers, "accuracy": [0.5, 0.5]}) == "refuted"
