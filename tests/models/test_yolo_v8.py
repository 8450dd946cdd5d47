"""YOLOv8: published sizes, strides, folding, and learning a few scenes."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from descend.losses.detection.task_aligned import TaskAligned
from descend.models.yolo_v8 import PARAMETERS, SIZES, TINY, TINY_INPUT, YoloV8, YoloV8Config
from descend.nn.convolution.folding import fold
from descend.ops.detection.distances import distances_to_boxes
from tests.close import close
from tests.losses.detection.scenes import draw_scenes, overfit, share_found
from tests.nn.convolution.test_folding import stir

pytestmark = pytest.mark.system("yolo-v8")


@pytest.mark.system("yolo-v8", "sizes")
@pytest.mark.parametrize("size", SIZES)
def test_published_counts(size: str) -> None:
    with torch.device("meta"):
        model = YoloV8(SIZES[size])
        found = model(torch.empty(1, 3, 640, 640))
    assert sum(p.numel() for p in model.parameters()) == PARAMETERS[size]
    assert sum(p.numel() for p in model.parameters() if p.requires_grad) == PARAMETERS[size] - 16
    assert found.logits.shape == (1, 8400, 80)
    assert found.sides.shape == (1, 8400, 4, 16)


@pytest.mark.system("yolo-v8", "anchor-free")
def test_strides_and_boxes() -> None:
    """Cells of 8, 16 and 32 pixels; a box is a point and four distances, and holds its point."""
    torch.manual_seed(0)
    model = YoloV8(TINY)
    found = model(TINY_INPUT())
    assert found.strides.unique(return_counts=True)[1].tolist() == [8 * 12, 4 * 6, 2 * 3]
    distances = (found.sides.softmax(-1) * torch.arange(4.0)).sum(-1)
    close(found.boxes, distances_to_boxes(distances, found.points, found.strides))
    assert (found.boxes[..., :2] <= found.points).all()
    assert (found.boxes[..., 2:] >= found.points).all()
    assert not [name for name, _ in model.named_parameters() if "anchor" in name]


@pytest.mark.system("yolo-v8", "folded")
def test_folded_equals_unfolded() -> None:
    torch.manual_seed(0)
    model = stir(YoloV8(dataclasses.replace(TINY, widths=(8, 16, 16, 32, 32))))
    x = torch.rand(2, 3, 64, 96)
    with torch.no_grad():
        ours, theirs = fold(model)(x), model(x)
    for a, b in zip(ours, theirs, strict=True):
        close(a, b)
        assert (a - b).abs().max() <= 1e-5 * b.abs().max()


@pytest.mark.system("yolo-v8", "learns")
def test_it_learns_a_batch() -> None:
    torch.manual_seed(0)
    model = YoloV8(YoloV8Config(widths=(8, 12, 16, 16, 16), depths=(1, 1, 1, 1), bins=8, labels=TINY.labels))
    scenes = draw_scenes(3)
    before, after = overfit(model, TaskAligned(), scenes, steps=60, lr=1e-2)
    assert after < before / 3
    recall, precision = share_found(model, scenes)
    assert recall == 1
    assert precision >= 0.8


def test_decode_keeps_order_and_limits() -> None:
    torch.manual_seed(0)
    model = YoloV8(TINY).eval()
    boxes, classes, scores = model.decode(model(TINY_INPUT()), least=0.001, most=7)
    assert boxes.shape == (2, 7, 4)
    assert classes.shape == scores.shape == (2, 7)
    assert (scores[:, :-1] >= scores[:, 1:]).all()
    assert (model.decode(model(TINY_INPUT()), least=0.99).classes == -1).all()


def test_bad_numbers_are_refused() -> None:
    with pytest.raises(ValueError, match="five even widths"):
        YoloV8Config(widths=(3, 8, 8, 8, 8))
    with pytest.raises(ValueError, match="at least 2"):
        YoloV8Config(bins=1)
