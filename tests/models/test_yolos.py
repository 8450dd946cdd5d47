"""YOLOS: transformers both ways, with places at the start or before every block, for images of any size."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from descend.contracts import Detects
from descend.errors import Mistake
from descend.losses.detection.set_prediction import SetPrediction
from descend.models.yolos import TINY, Yolos
from tests.close import close
from tests.losses.detection.scenes import check_empty, draw_scenes, overfit
from tests.models.peers import check_both_ways, random_peer

transformers = pytest.importorskip("transformers")


def images(height: int = 20, width: int = 28) -> Tensor:
    return torch.randn(2, 3, height, width, generator=torch.Generator().manual_seed(0))


@pytest.mark.system("detr", "yolos")
@pytest.mark.parametrize("every", [True, False])
@pytest.mark.parametrize("sides", [(16, 24), (20, 28), (19, 30)])
def test_both_ways(every: bool, sides: tuple[int, int], tmp_path: Path) -> None:
    config = transformers.YolosConfig(
        image_size=[16, 24], patch_size=4, hidden_size=16, num_hidden_layers=3, num_attention_heads=2,
        intermediate_size=24, num_detection_tokens=5, num_labels=3, use_mid_position_embeddings=every,
    )  # fmt: skip
    theirs, x = random_peer(transformers.YolosForObjectDetection, config), images(*sides)
    ours = check_both_ways(theirs, tmp_path, lambda m: m(x).logits[-1], lambda m: m(x).logits)
    close(ours(x).boxes[-1], theirs(x).pred_boxes)
    assert ours.config.places == ("every" if every else "first")
    assert isinstance(ours, Detects)


@pytest.mark.system("detr", "yolos")
@pytest.mark.parametrize("places", ["first", "every"])
def test_it_learns(places: Any) -> None:
    torch.manual_seed(0)
    model = Yolos(replace(TINY, sides=(64, 64), patch=8, width=32, hidden=48, places=places))
    first, last = overfit(model, SetPrediction(), draw_scenes(), steps=40, lr=2e-3)
    assert last < 0.8 * first
    check_empty(model, SetPrediction())


def test_an_image_without_a_patch_is_refused() -> None:
    with pytest.raises(Mistake, match="no patch of 4"):
        Yolos(TINY)(images(3, 28))
