"""Linear probes by depth on three seeds, recorded activations, and pictures of them."""

from __future__ import annotations

from functools import partial

import pytest
import torch

from descend.interpret.layers import feature_maps, watch_layer
from descend.interpret.representations import project, representations
from descend.labs import depth_probes
from descend.labs._evidence import judge_seed
from descend.labs.depth_probes import Network, figure, gradient_histograms, measure
from descend.metrics.probe import linear_probe, probe_accuracy
from tests.close import close

verdict = partial(judge_seed, depth_probes)

SLUG = "hierarchical-representations"


@pytest.mark.system(SLUG)
@pytest.mark.system(SLUG, "probes", "hand-made")
@pytest.mark.parametrize("seed", range(3))
def test_the_claim(seed: int) -> None:
    numbers = measure(seed, budget=2.6)
    assert verdict(numbers) == "supported", numbers
    assert len(figure(numbers).axes) == 1
    assert verdict({**numbers, "steps": 1}) == "open"
    assert verdict({**numbers, "accuracy": [0.2, 0.9, 0.4, 0.5, 0.6]}) == "refuted"
    assert verdict({**numbers, "accuracy": [0.2, 0.3, 0.6, 0.5, 0.6]}) == "refuted"


@pytest.mark.system(SLUG)
@pytest.mark.system(SLUG, "any-layer")
def test_recorded_tensors_are_the_forward_values() -> None:
    torch.manual_seed(0)
    model, x = Network().eval(), torch.randn(3, 3, 16, 16)
    first = model.c1(x)
    second = model.c2(model.pool(first))
    with watch_layer(model, "c1") as seen:
        model(x)
    assert torch.equal(seen[0], first)
    assert torch.equal(feature_maps(model, "c2", x), second)
    assert torch.equal(feature_maps(model, "c3.0", x), model.c3[0](model.pool(second)))
    head = torch.nn.functional.adaptive_avg_pool2d(model.c3(model.pool(second)), 2).flatten(1)
    close(representations(model, x), head)


@pytest.mark.system(SLUG, "pictures")
def test_pictures_of_a_layer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two groups of vectors stay apart in both projections; feature maps are images."""
    monkeypatch.setattr("descend.interpret.representations.STEPS", 1000)
    random = torch.Generator().manual_seed(0)
    vectors = torch.cat([torch.randn(30, 10, generator=random), torch.randn(30, 10, generator=random) + 6])
    y = torch.arange(60) // 30
    mixed = torch.randperm(60, generator=random)
    for way in ("pca", "tsne"):
        flat = project(vectors, way)
        assert flat.shape == (60, 2)
        assert probe_accuracy(flat[mixed], y[mixed]) > 0.95
    assert feature_maps(Network(), "c1", torch.randn(2, 3, 16, 16)).shape == (2, 8, 16, 16)


def test_gradient_histograms_see_directions() -> None:
    """An upright edge votes for one direction, a lying one for another."""
    x = torch.zeros(2, 3, 16, 16)
    x[0, :, :, 8:] = 1
    x[1, :, 8:] = 1
    found = gradient_histograms(x, cells=1)
    assert found.argmax(1)[0] != found.argmax(1)[1]
    close(found.amax(1), torch.ones(2))


def test_a_probe_of_the_label_itself() -> None:
    y = torch.arange(40) % 4
    assert probe_accuracy(torch.eye(4)[y], y) == 1
    assert linear_probe(torch.eye(4)[y], y).shape == (5, 4)
