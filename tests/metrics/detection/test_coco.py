from __future__ import annotations

import math

import pytest
import torch

from descend.errors import Mistake
from descend.metrics.detection import matching
from descend.metrics.detection.coco import judge_detections
from descend.metrics.detection.evidence import DetectionEvidence
from tests.close import close
from tests.metrics.detection.sets import CLASSES, as_coco, nan_for_none, random_set

NAMES = (
    "map",
    "map50",
    "map75",
    "small",
    "medium",
    "large",
    "ar1",
    "ar10",
    "ar100",
    "ar_small",
    "ar_medium",
    "ar_large",
)


@pytest.mark.system("average-precision-and-map")
@pytest.mark.system("average-precision-and-map", "coco")
@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("coarse", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_the_scores_are_pycocotools(seed: int, coarse: bool, native: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """All twelve, every precision and every recall, on sets with crowds, ties, empty images, classes without truth."""
    if not native:
        monkeypatch.setattr(matching, "match_found", lambda *_: None)
    evidence = random_set(seed, coarse=coarse)
    ours, theirs = judge_detections(evidence, CLASSES), as_coco(evidence)
    close(torch.tensor([getattr(ours, name) for name in NAMES], dtype=torch.float64), nan_for_none(theirs.stats))
    close(ours.precision, nan_for_none(theirs.eval["precision"][..., 2]))
    close(ours.recall, nan_for_none(theirs.eval["recall"]))
    close(ours.per_class, nan_for_none(theirs.eval["precision"][..., 0, 2]).mean(dim=(0, 1)))


def perfect(boxes: list[list[float]]) -> DetectionEvidence:
    truth = torch.tensor(boxes).reshape(-1, 4)
    kinds = torch.zeros(len(boxes), dtype=torch.long)
    size = (truth[:, 2:] - truth[:, :2]).prod(dim=1)
    return DetectionEvidence(truth, kinds, torch.linspace(1, 0.5, len(boxes)), truth, kinds, kinds.bool(), size)


@pytest.mark.system("average-precision-and-map", "duplicates")
def test_perfect_empty_and_duplicate_answers() -> None:
    """Perfect: 1. Nothing found: 0, where pycocotools cannot even read it. A duplicate is wrong."""
    image = perfect([[0, 0, 40, 40], [60, 60, 100, 100]])
    assert judge_detections([image], 1).map == pytest.approx(1)
    nothing = image._replace(boxes=image.boxes[:0], classes=image.classes[:0], scores=image.scores[:0])
    numbers = judge_detections([nothing, nothing], 1).numbers()
    assert set(numbers.values()) == {0.0}
    assert "small" not in numbers  # there are none: nothing to judge
    twice = image._replace(**{
        name: torch.cat([x, x]) for name, x in zip(("boxes", "classes"), (image.boxes, image.classes), strict=True)
    }, scores=torch.tensor([0.9, 0.7, 0.8, 0.6]))  # fmt: skip
    assert judge_detections([twice], 1).map50 == pytest.approx((51 * 1 + 50 * 2 / 3) / 101)


def test_nothing_at_all() -> None:
    """No images, or images without objects: no score, and no crash."""
    for evidence in ([], [perfect([])]):
        scores = judge_detections(evidence, 3)
        assert scores.numbers() == {}
        assert math.isnan(scores.map)
        assert scores.per_class.shape == (3,)


def test_order_of_images_and_of_objects() -> None:
    """Without ties the order of images does not matter; map ≤ map50."""
    evidence = random_set(7)
    scores, other = judge_detections(evidence, CLASSES), judge_detections(evidence[::-1], CLASSES)
    close(scores.precision, other.precision)
    assert scores.map <= scores.map50


def test_what_is_refused() -> None:
    image = perfect([[0, 0, 40, 40]])
    with pytest.raises(Mistake, match="class 0, which is not one of 0 to -1"):
        judge_detections([image], 0)
    with pytest.raises(Mistake, match="a found object has class 3"):
        judge_detections([image._replace(classes=torch.tensor([3]))], 2)
    with pytest.raises(Mistake, match="image 1: 1 found boxes need"):
        judge_detections([image, image._replace(scores=torch.zeros(2))], 1)
    with pytest.raises(Mistake, match="image 0: 1 true boxes need"):
        judge_detections([image._replace(area=torch.zeros(0))], 1)
