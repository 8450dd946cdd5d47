"""The lab of CNN against ViT: biases to the last digit, a short data curve, the verdict's parts."""

from __future__ import annotations

from copy import deepcopy
from functools import partial
from typing import Any

import pytest
import torch

from descend.labs import cnn_versus_vit
from descend.labs._evidence import judge_seed
from descend.labs.cnn_versus_vit import CLAIM, accuracy, biases, build, figure, fit_model, measure_distances
from descend.metrics.attention_maps import grid_distance
from tests.close import close

verdict = partial(judge_seed, cnn_versus_vit)

SLUG = "cnn-versus-vit-lab"
GOOD = {
    "images": [40, 200, 1000], "cnn": [0.8, 0.9, 0.97], "vit": [0.6, 0.8, 0.95], "draws": 3,
    "gap": [0.2, 0.1, 0.02], "error": [0.02, 0.01, 0.01], **biases(0),
}  # fmt: skip


@pytest.mark.system("cnn-versus-vit-lab", "shift", "field", "permutation")
@pytest.mark.system(SLUG)
@pytest.mark.parametrize("seed", [0, 1])
def test_biases_hold_for_any_weights(seed: int) -> None:
    """MF-C.72: convolutions move with the image, attention is equivariant (27.3.2 says invariant), positions end it."""
    found = biases(seed)
    assert found["convolution_moves"] < 1e-12
    assert found["vit_without_positions_moves"] < 1e-12 < 1e-2 < found["vit_moves"]  # rolled by whole patches
    assert found["field_measured"] == found["field"] == 7  # 1 + 3 · 2
    assert found["vit_field_measured"] == 16  # all rows after one layer
    assert found["attention_equivariance"] < 1e-12 < 1e-2 < found["attention_invariance"]
    assert found["pooled_invariance"] < 1e-12
    assert found["with_positions"] > 1e-2


@pytest.mark.system("cnn-versus-vit-lab", "equal-terms")
@pytest.mark.system(SLUG)
def test_the_two_have_as_many_parameters() -> None:
    sizes = [sum(p.numel() for p in build(name, 0).parameters()) for name in ("cnn", "vit")]
    assert 0.8 < sizes[0] / sizes[1] < 1.25


@pytest.mark.system(SLUG)
def test_a_training_learns_and_repeats(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bright images against dark ones, seen at once by both; the same seed gives the same number."""
    monkeypatch.setattr("descend.labs.cnn_versus_vit.STEPS", 25)
    x, y = torch.cat([torch.rand(20, 1, 8, 8), torch.rand(20, 1, 8, 8) - 1]), torch.arange(40) // 20
    for name in ("cnn", "vit"):
        found = accuracy(name, (x, y), (x, y), 0)
        assert found > 0.9
        assert found == accuracy(name, (x, y), (x, y), 0)


@pytest.mark.system("cnn-versus-vit-lab", "attention-distance")
@pytest.mark.system(SLUG)
def test_attention_reaches_far_from_the_first_layer_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Equal weights over 4 × 4 patches look 1.96 patches far; each layer of a ViT has its own distance."""
    places = torch.cartesian_prod(torch.arange(4.0), torch.arange(4.0))
    equal = torch.cdist(places, places).mean()
    close(grid_distance(torch.full((2, 3, 17, 17), 1 / 17), (4, 4)).mean(), equal)
    assert not grid_distance(torch.eye(17), (4, 4)).any()
    aside = torch.eye(16).roll(1, 1)[[0, 4, 8, 12]]  # the patches of the first column look at their right neighbours
    assert grid_distance(aside.repeat_interleave(4, 0), (4, 4))[::4].tolist() == [1, 1, 1, 1]
    monkeypatch.setattr("descend.labs.cnn_versus_vit.STEPS", 20)
    x, y = torch.rand(40, 1, 8, 8), torch.arange(40) % 2
    found = measure_distances(fit_model("vit", (x, y), 0), x)
    assert len(found) == 2
    assert all(0.5 * equal < one < 1.5 * equal for one in found)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({}, "supported"),
        ({"draws": 2}, "open"),
        ({"gap": [0.03, 0.1, 0.02]}, "refuted"),
        ({"gap": [0.2, 0.1, 0.11]}, "refuted"),
        ({"attention_invariance": 0.0}, "refuted"),
        ({"field_measured": 9}, "refuted"),
    ],
)
def test_verdict(change: dict[str, Any], said: str) -> None:
    assert verdict({**deepcopy(GOOD), **change}) == said


def test_figure() -> None:
    assert "attention" in CLAIM
    assert len(figure(GOOD).axes) == 1
