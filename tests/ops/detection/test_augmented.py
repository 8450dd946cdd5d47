from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from ensemble_boxes import weighted_boxes_fusion
from torch import Tensor

from descend.contracts import Boxes
from descend.errors import Mistake
from descend.models import detr, yolo_v8
from descend.ops.detection.augmented import (
    MergeByFusion,
    MergeBySuppression,
    View,
    flip_across,
    flip_down,
    fuse_boxes,
    look_again,
    map_back,
    show,
)
from descend.ops.nms import keep_best
from tests.close import close

VIEWS = [View(across=across, down=down, scale=scale) for across in (False, True) for down in (False, True)
         for scale in (0.5, 1.0, 2.0)]  # fmt: skip


def find_bright(x: Tensor) -> Boxes:
    """A detector without weights: the box around the pixels above ½ of each image, with their share as its score."""
    bright = x[:, 0] > 0.5
    rows, columns = bright.any(dim=2), bright.any(dim=1)
    h, w = bright.shape[1:]
    sides = [
        (line.float().argmax(dim=1), n - line.flip(1).float().argmax(dim=1)) for line, n in ((columns, w), (rows, h))
    ]
    (x0, x1), (y0, y1) = sides
    boxes = torch.stack([x0, y0, x1, y1], dim=-1).float()[:, None]
    return Boxes(boxes, torch.zeros(len(x), 1, dtype=torch.long), torch.full((len(x), 1), 0.9))


def scene() -> tuple[Tensor, Tensor]:
    x = torch.zeros(2, 3, 32, 48)
    x[0, :, 4:12, 8:20] = 1
    x[1, :, 16:28, 30:46] = 1
    return x, torch.tensor([[[8.0, 4, 20, 12]], [[30.0, 16, 46, 28]]])


@pytest.mark.system("test-time-augmentation")
@pytest.mark.system("test-time-augmentation", "mapped-back")
@pytest.mark.parametrize("view", VIEWS)
def test_boxes_come_back(view: View) -> None:
    """What is found in a flipped and scaled copy, mapped back, is what is found in the image: to the last bit."""
    x, boxes = scene()
    found = map_back(find_bright(show(x, view)), view, (32, 48))
    assert torch.equal(found.boxes, boxes)


def test_a_flip_twice_is_none() -> None:
    boxes = torch.randint(0, 100, (50, 4), generator=torch.Generator().manual_seed(0)) / 4
    assert torch.equal(flip_across(flip_across(boxes, 64), 64), boxes)
    assert torch.equal(flip_down(flip_down(boxes, 64), 64), boxes)


@pytest.mark.system("test-time-augmentation", "identity")
@pytest.mark.parametrize("merge", [MergeBySuppression(), MergeByFusion()])
def test_one_plain_view_changes_nothing(merge: MergeBySuppression | MergeByFusion) -> None:
    x, _ = scene()
    found, plain = look_again(find_bright, x, [View()], merge), find_bright(x)
    close(found.boxes, plain.boxes)
    assert torch.equal(found.classes, plain.classes)
    close(found.scores, plain.scores)


@pytest.mark.system("test-time-augmentation", "merged")
@pytest.mark.parametrize("merge", [MergeBySuppression(), MergeByFusion()])
def test_all_views_together(merge: MergeBySuppression | MergeByFusion) -> None:
    """Twelve copies say the same: one box remains of each image."""
    x, boxes = scene()
    found = look_again(find_bright, x, VIEWS, merge)
    close(found.boxes, boxes)
    close(found.scores, torch.full((2, 1), 0.9))


def noisy(b: int, n: int, views: int, seed: int, kinds: int = 3) -> Boxes:
    """Boxes in 0..1 of several views of the same objects."""
    random = torch.Generator().manual_seed(seed)
    low = torch.rand(b, n, 2, generator=random, dtype=torch.float64) * 0.6
    boxes = torch.cat([low, low + 0.1 + torch.rand(b, n, 2, generator=random, dtype=torch.float64) * 0.3], dim=-1)
    boxes = boxes.repeat(1, views, 1)
    boxes = (boxes + 0.02 * torch.randn(boxes.shape, generator=random, dtype=torch.float64)).clamp(0, 1)
    classes = torch.randint(0, kinds, (b, n), generator=random).repeat(1, views)
    return Boxes(boxes, classes, torch.rand(b, n * views, generator=random, dtype=torch.float64) * 0.9 + 0.05)


@pytest.mark.system("test-time-augmentation")
@pytest.mark.system("test-time-augmentation", "fusion")
@pytest.mark.parametrize(("views", "tau"), [(1, 0.55), (3, 0.55), (4, 0.3)])
def test_fusion_is_that_of_ensemble_boxes(views: int, tau: float) -> None:
    found = noisy(4, 7, views, seed=views)
    found.classes[1, 3] = -1
    fused = fuse_boxes(found, views, tau)
    for image in range(4):
        parts = []
        for view in range(views):
            mine = slice(view * 7, view * 7 + 7)
            there = found.classes[image, mine] >= 0
            parts.append([x[image, mine][there].numpy() for x in (found.boxes, found.scores, found.classes)])
        boxes, scores, kinds = weighted_boxes_fusion(*([p[k] for p in parts] for k in range(3)), iou_thr=tau)
        there = fused.classes[image] >= 0
        close(fused.scores[image][there], torch.from_numpy(np.asarray(scores)).double(), loosen=1e4)  # theirs: float32
        close(fused.boxes[image][there], torch.from_numpy(np.asarray(boxes)).double(), loosen=1e4)
        assert fused.classes[image][there].tolist() == kinds.astype(int).tolist()


@pytest.mark.system("test-time-augmentation", "merged")
def test_suppression_over_all_views() -> None:
    found = noisy(3, 5, 4, seed=9)
    merged = MergeBySuppression(0.5)(found, 4)
    expected = keep_best(found.boxes, found.scores, found.classes, 0.5, 0.0)
    assert all(torch.equal(a, b) for a, b in zip(merged, expected, strict=True))
    assert merged.boxes.shape[1] < 20


def test_fusion_averages_out_noise() -> None:
    """The fused box of many noisy ones is nearer to the truth than the best single one, which suppression keeps."""
    random = torch.Generator().manual_seed(0)
    truth = torch.tensor([0.3, 0.3, 0.6, 0.6])
    boxes = truth + 0.02 * torch.randn(40, 8, 4, generator=random)
    found = Boxes(boxes, torch.zeros(40, 8, dtype=torch.long), torch.rand(40, 8, generator=random) * 0.3 + 0.6)
    fused, kept = MergeByFusion(0.3)(found, 8), MergeBySuppression(0.3)(found, 8)
    assert (fused.boxes[:, 0] - truth).abs().mean() < 0.6 * (kept.boxes[:, 0] - truth).abs().mean()


def test_empty_and_refused() -> None:
    empty = Boxes(torch.zeros(2, 0, 4), torch.zeros(2, 0, dtype=torch.long), torch.zeros(2, 0))
    assert fuse_boxes(empty, 3).boxes.shape == (2, 0, 4)
    with pytest.raises(Mistake, match="at least one view"):
        look_again(find_bright, torch.zeros(1, 3, 8, 8), [], MergeByFusion())


def test_copies_fit_the_stride() -> None:
    x = torch.rand(1, 3, 64, 96)
    assert show(x, View(scale=0.8), stride=32).shape[-2:] == (64, 64)
    assert show(x, View(scale=1.25), stride=32).shape[-2:] == (64, 128)


@pytest.mark.system("test-time-augmentation", "any-detector")
@pytest.mark.parametrize("family", [yolo_v8, detr])
@pytest.mark.parametrize("merge", [MergeBySuppression(0.5), MergeByFusion(0.5)])
def test_around_any_detector(family: Any, merge: MergeBySuppression | MergeByFusion) -> None:
    """The merged answer is that of the copies one by one, each mapped back by hand."""
    torch.manual_seed(0)
    model = (family.YoloV8 if family is yolo_v8 else family.Detr)(family.TINY).eval()
    side = 2 * model.stride
    x, views = torch.rand(2, 3, side, side), (View(), View(across=True), View(scale=1.5, down=True))

    def detect(x: Tensor) -> Boxes:
        return model.decode(model(x), 0.0, 20)

    with torch.no_grad():
        found = look_again(detect, x, views, merge, model.stride)
        plain, mirrored = detect(x), detect(x.flip(-1))
        larger = torch.nn.functional.interpolate(x, (3 * model.stride,) * 2, mode="bilinear", antialias=True)
        upside = detect(larger.flip(-2))
    mirrored.boxes[..., [0, 2]] = side - mirrored.boxes[..., [2, 0]]
    upside.boxes[..., [1, 3]] = 3 * model.stride - upside.boxes[..., [3, 1]]
    upside = upside._replace(boxes=upside.boxes * 2 / 3)
    expected = merge(Boxes(*(torch.cat(x, dim=1) for x in zip(plain, mirrored, upside, strict=True))), 3)
    there = expected.classes >= 0
    assert there.any()
    assert torch.equal(found.classes, expected.classes)
    close(found.boxes[there], expected.boxes[there])
    close(found.scores, expected.scores)
