from __future__ import annotations

import math

import pytest
import torch
from sklearn.metrics import average_precision_score

from descend.metrics.detection.coco import judge_detections
from descend.metrics.detection.curves import (
    PrecisionRecall,
    average_11,
    average_101,
    envelope_area,
    plain_area,
    precision_and_recall,
    trace_curve,
)
from descend.metrics.detection.evidence import DetectionEvidence
from tests.close import close
from tests.metrics.detection.sets import CLASSES, random_set


@pytest.mark.system("average-precision-and-map")
@pytest.mark.system("average-precision-and-map", "curve", "101-point")
def test_a_curve_by_hand() -> None:
    """Right, wrong, right, wrong, right of four objects: all four areas on paper."""
    right = torch.tensor([1, 0, 1, 0, 1])
    precision, recall = precision_and_recall(right, 4)
    close(precision, torch.tensor([1, 1 / 2, 2 / 3, 2 / 4, 3 / 5], dtype=torch.float64))
    close(recall, torch.tensor([1, 1, 2, 2, 3], dtype=torch.float64) / 4)
    curve = PrecisionRecall(precision, recall, torch.linspace(1, 0, 5))
    assert plain_area(curve) == pytest.approx((1 + 2 / 3 + 3 / 5) / 4)
    assert envelope_area(curve) == pytest.approx((1 + 2 / 3 + 3 / 5) / 4)
    assert average_101(curve) == pytest.approx((26 + 25 * 2 / 3 + 25 * 3 / 5) / 101)
    assert average_11(curve) == pytest.approx((3 + 3 * 2 / 3 + 2 * 3 / 5) / 11)
    falling = PrecisionRecall(*precision_and_recall(torch.tensor([0, 1, 1]), 2), torch.zeros(3))
    assert plain_area(falling) == pytest.approx((1 / 2 + 2 / 3) / 2)
    assert envelope_area(falling) == pytest.approx(2 / 3)  # precision rises at the end: the envelope counts it at once


@pytest.mark.system("average-precision-and-map", "all-point", "curve")
def test_the_plain_area_is_scikit_learns() -> None:
    """Where every object is found, average precision of a ranking is the same thing."""
    random = torch.Generator().manual_seed(0)
    right, scores = torch.rand(200, generator=random) < 0.4, torch.rand(200, generator=random).sort().values.flip(0)
    curve = PrecisionRecall(*precision_and_recall(right, int(right.sum())), scores)
    assert plain_area(curve) == pytest.approx(average_precision_score(right.numpy(), scores.numpy()))


@pytest.mark.system("average-precision-and-map", "101-point")
@pytest.mark.parametrize("coarse", [False, True])
def test_101_points_are_cocos(coarse: bool) -> None:
    evidence = random_set(5, coarse=coarse)
    scores = judge_detections(evidence, CLASSES)
    for kind in range(CLASSES - 1):
        assert average_101(trace_curve(evidence, kind)) == pytest.approx(float(scores.per_class50[kind]), abs=1e-9)
        at75 = float(scores.precision[5, :, kind, 0].mean())
        assert average_101(trace_curve(evidence, kind, 0.75)) == pytest.approx(at75, abs=1e-9)


@pytest.mark.system("average-precision-and-map", "envelope")
def test_the_envelope_never_lies_below() -> None:
    """Plain ≤ envelope; and with many points the 101 points come close to the envelope's area."""
    evidence = random_set(3, images=60)
    for kind in range(CLASSES - 2):
        curve = trace_curve(evidence, kind)
        assert 0 < plain_area(curve) <= envelope_area(curve) + 1e-12
        assert abs(average_101(curve) - envelope_area(curve)) < 0.02
        assert (curve.scores.diff() <= 0).all()
        assert (curve.recall.diff() >= 0).all()


def test_perfect_and_none() -> None:
    box, zero, one = torch.tensor([[0.0, 0, 9, 9]]), torch.zeros(1, dtype=torch.long), torch.ones(1)
    image = DetectionEvidence(box, zero, one, box, zero, zero.bool(), 81 * one)
    for form in (plain_area, envelope_area, average_101, average_11):
        assert form(trace_curve([image], 0)) == pytest.approx(1)
        nothing = image._replace(boxes=box[:0], classes=zero[:0], scores=one[:0])
        assert form(trace_curve([nothing], 0)) == 0
    assert math.isnan(plain_area(trace_curve([image._replace(classes=zero + 1)], 1)))  # no true object of that class
