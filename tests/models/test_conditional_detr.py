"""Conditional DETR: transformers both ways, padding, and its two halves of a head by their equation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import descend
from descend.contracts import Detects
from descend.losses.detection.set_prediction import FocalSetPrediction
from descend.models.conditional_detr import TINY, ConditionalCross, ConditionalDetr
from tests.close import close
from tests.losses.detection.scenes import check_empty, draw_scenes, overfit
from tests.models.peers import check_both_ways, random_peer
from tests.models.test_detr import SMALL, backbones, images

transformers = pytest.importorskip("transformers")


def peer(backbone: str = "basic") -> Any:
    config = transformers.ConditionalDetrConfig(backbone_config=backbones()[backbone], **SMALL)
    return random_peer(transformers.ConditionalDetrForObjectDetection, config)


@pytest.mark.system("detr", "conditional")
@pytest.mark.parametrize("backbone", ["basic", "bottleneck"])
def test_both_ways(backbone: str, tmp_path: Path) -> None:
    theirs, x = peer(backbone), images()
    ours = check_both_ways(theirs, tmp_path, lambda m: m(x).logits[-1], lambda m: m(x).logits)
    close(ours(x).boxes[-1], theirs(x).pred_boxes)
    assert isinstance(ours, Detects)
    assert ours.config.queries == 5


@pytest.mark.system("detr", "conditional")
def test_padding_is_theirs(tmp_path: Path) -> None:
    theirs, x = peer(), images()
    theirs.save_pretrained(tmp_path)
    ours: Any = descend.load(tmp_path)
    real = torch.ones(2, 70, 100, dtype=torch.bool)
    real[0, 40:], real[1, :, 64:] = False, False
    close(ours(x, real).boxes[-1], theirs(x, real.long()).pred_boxes)


@pytest.mark.system("detr", "conditional")
def test_scores_are_the_sum_of_two_products() -> None:
    """(q_c · k_c + q_p · k_p) / √(2 d/h), head by head."""
    torch.manual_seed(0)
    cross = ConditionalCross(8, 2)
    y, query, sine = torch.randn(3, 1, 3, 8)
    tokens, places = torch.randn(2, 1, 5, 8)

    def split(x: Tensor) -> Tensor:
        return x.unflatten(-1, (2, 4)).transpose(1, 2)

    content = split(cross.q(y)) @ split(cross.k(tokens)).mT
    place = split(cross.q_sine(sine)) @ split(cross.k_place(places)).mT
    weights = ((content + place) / 8**0.5).softmax(-1)
    expected = cross.out((weights @ split(cross.v(tokens))).transpose(1, 2).flatten(2))
    close(cross(y, query, sine, tokens, places, None), expected)


def test_it_learns() -> None:
    torch.manual_seed(0)
    model = ConditionalDetr(TINY)
    first, last = overfit(model, FocalSetPrediction(), draw_scenes(), steps=40, lr=3e-3)
    assert last < 0.75 * first
    check_empty(model, FocalSetPrediction())
