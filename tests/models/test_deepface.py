"""DeepFace: the paper's maps and parameters, and vectors that two images are compared by."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from descend.losses.metric_learning import distance
from descend.models.deepface import SIZES, TINY, DeepFace
from descend.nn.convolution.local import LocallyConnected2d
from tests.close import close


@pytest.mark.system("deepface-verification")
@pytest.mark.system("deepface-verification", "network")
def test_the_papers_network() -> None:
    with torch.device("meta"):
        model = DeepFace(SIZES["deepface"])
        maps = [tuple(x.shape[1:]) for x in trace(model, torch.zeros(1, 3, 152, 152))]
    assert maps == [(32, 142, 142), (32, 71, 71), (16, 63, 63), (16, 55, 55), (16, 25, 25), (16, 21, 21)]
    local = [m for m in model.modules() if isinstance(m, LocallyConnected2d)]
    assert [sum(p.numel() for p in m.parameters()) for m in local] == [
        55 * 55 * 16 * (9 * 9 * 16 + 1),
        25 * 25 * 16 * (7 * 7 * 16 + 1),
        21 * 21 * 16 * (5 * 5 * 16 + 1),
    ]
    assert model.represent.out_features == 4096
    assert sum(p.numel() for p in model.parameters()) == 118_923_774


def trace(model: DeepFace, x: torch.Tensor) -> list[torch.Tensor]:
    found = []
    for layer in model.layers:
        x = layer(x)
        if not isinstance(layer, torch.nn.ReLU):
            found.append(x)
    return found


@pytest.mark.system("deepface-verification")
@pytest.mark.system("deepface-verification", "symmetric")
def test_distances_are_symmetric_and_0_for_the_same_image() -> None:
    torch.manual_seed(0)
    model = DeepFace(TINY).eval()
    a, b = torch.randn(2, 5, *TINY.image)
    ea, eb = model.embed(a), model.embed(b)
    assert torch.equal(distance(ea, eb), distance(eb, ea))
    assert torch.equal(distance(ea, model.embed(a)), torch.zeros(5))
    close(ea.norm(dim=1), torch.ones(5))


def test_images_that_are_too_small_are_refused() -> None:
    with pytest.raises(ValueError, match="too small"):
        DeepFace(replace(TINY, image=(1, 7, 7)))
    with pytest.raises(ValueError, match="one stride for each"):
        replace(TINY, strides=(1,))
    with pytest.raises(ValueError, match="two convolutions"):
        replace(TINY, convs=(4,))
