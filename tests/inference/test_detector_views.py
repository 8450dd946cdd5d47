"""A detector that looks at several views of an image."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from descend.data.detection.framing import Stretch
from descend.data.detection.prepare import DetectionPreprocessing
from descend.inference.detector import Detector
from descend.inference.trained import Trained
from descend.models import yolo_v8
from descend.ops.detection.augmented import MergeByFusion, View, look_again
from tests.close import close


@pytest.fixture(scope="module")
def detector() -> Detector:
    torch.manual_seed(0)
    model = yolo_v8.YoloV8(yolo_v8.TINY).eval()
    for p in model.head.parameters():
        torch.nn.init.normal_(p, std=0.5)  # a new one gives every place the same score
    return Detector(Trained(model, Path(".")), DetectionPreprocessing(Stretch(64, 64)), ("a", "b", "c"), least=0.0)


def boxes(detector: Detector, image: np.ndarray) -> torch.Tensor:
    (found,) = detector.detect([image])
    return torch.tensor([[*o.box, o.score] for o in found.objects], dtype=torch.float64)


@pytest.mark.system("test-time-augmentation", "any-detector")
def test_the_views_are_fused_in_the_frame_and_put_back(detector: Detector) -> None:
    """An image of twice the frame's size: boxes of the fused views, doubled, cut at its edges."""
    image = np.random.default_rng(0).integers(0, 256, (128, 128, 3), dtype=np.uint8)
    views, model = (View(), View(across=True), View(scale=1.5)), detector.trained.model
    with torch.no_grad():
        fused = look_again(
            lambda x: model.decode(model(x), 0.0, 100),
            detector.prepare([image]).x,
            views,
            MergeByFusion(),
            model.stride,
        )
    expected = torch.cat([(fused.boxes * 2).clamp(0, 128), fused.scores[..., None]], dim=-1)[0].double()
    found = boxes(detector.again(views), image)
    close(found, expected, loosen=1e4)  # float32 inside
    assert not torch.equal(found[:5], boxes(detector, image)[:5])


def test_one_plain_view_is_no_view(detector: Detector) -> None:
    image = np.random.default_rng(1).integers(0, 256, (80, 50, 3), dtype=np.uint8)
    found, plain = boxes(detector.again([View()]), image), boxes(detector, image)
    assert len(found) <= len(plain)  # fusion joins what suppression left at a lower IoU
    close(found[0, 4], plain[0, 4], loosen=1e4)


def test_nothing_below_the_threshold(detector: Detector) -> None:
    """An object that one of two views sees loses half of its score, and may fall below."""
    image = np.random.default_rng(2).integers(0, 256, (64, 64, 3), dtype=np.uint8)
    scores = boxes(detector.again(), image)[:, 4]
    least = float(scores.median())
    kept = boxes(detector.again().above(least), image)[:, 4]
    assert len(kept)
    assert kept.min() >= least
