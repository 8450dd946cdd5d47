"""The loss of FCOS against loops over images, points and boxes."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from descend.contracts import Boxes, count_units
from descend.losses.detection.fcos import FCOSLoss, centreness, match_points
from descend.ops.detection.distances import make_points
from tests.close import close
from tests.losses.detection.test_focal import focal_by_hand
from tests.rectangles import make_rectangles, part_of

K = 3


def make_found(images: int) -> SimpleNamespace:
    g = torch.Generator().manual_seed(0)
    points, strides = make_points([(12, 12), (6, 6), (3, 3)], [4, 8, 16], torch.zeros(()))
    shape = (images, len(points))
    return SimpleNamespace(
        logits=torch.randn(*shape, K, generator=g, dtype=torch.float64),
        distances=torch.rand(*shape, 4, generator=g, dtype=torch.float64) * 3,
        centreness=torch.randn(*shape, generator=g, dtype=torch.float64),
        points=points.double(),
        strides=strides.double(),
    )


def generalized(a: np.ndarray, b: np.ndarray) -> float:
    w, h = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    both = max(w, 0) * max(h, 0)
    union = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - both
    hull = (max(a[2], b[2]) - min(a[0], b[0])) * (max(a[3], b[3]) - min(a[1], b[1]))
    return both / union - (hull - union) / hull


def match_by_loops(points: np.ndarray, strides: np.ndarray, boxes: np.ndarray, rule: FCOSLoss) -> dict[int, int]:
    found = {}
    for p, ((x, y), s) in enumerate(zip(points, strides, strict=True)):
        best = None
        for j, (x0, y0, x1, y1) in enumerate(boxes):
            sides = [x - x0, y - y0, x1 - x, y1 - y]
            near = max(abs(x - (x0 + x1) / 2), abs(y - (y0 + y1) / 2)) < rule.radius * s
            low = 0 if s == strides.min() else s * rule.reach / 2
            high = np.inf if s == strides.max() else s * rule.reach
            if near and min(sides) > 0 and low < max(sides) < high:
                area = (x1 - x0) * (y1 - y0)
                best = (area, j) if best is None or area < best[0] else best
        if best:
            found[p] = best[1]
    return found


def by_loops(found: SimpleNamespace, truth: Boxes, rule: FCOSLoss) -> tuple[float, float, float]:
    named = moved = told = 0.0
    points, strides = found.points.numpy(), found.strides.numpy()
    for i in range(len(truth.boxes)):
        real = truth.classes[i] >= 0
        boxes, classes = truth.boxes[i][real].double().numpy(), truth.classes[i][real].tolist()
        match = match_by_loops(points, strides, boxes, rule)
        weight = max(1, len(boxes)) / max(1, len(match))
        for p, ((x, y), s) in enumerate(zip(points, strides, strict=True)):
            for c in range(K):
                hot = p in match and classes[match[p]] == c
                named += weight * focal_by_hand(float(found.logits[i, p, c]), hot, rule.alpha, rule.gamma)
            if p in match:
                left, top, right, bottom = found.distances[i, p].numpy() * s
                x0, y0, x1, y1 = box = boxes[match[p]]
                guess = np.array([x - left, y - top, x + right, y + bottom])
                moved += weight * (1 - generalized(guess, box))
                left, top, right, bottom = x - x0, y - y0, x1 - x, y1 - y
                wanted = np.sqrt(min(left, right) / max(left, right) * min(top, bottom) / max(top, bottom))
                z = float(found.centreness[i, p])
                told += weight * (wanted * np.log1p(np.exp(-z)) + (1 - wanted) * np.log1p(np.exp(z)))
    units = int(count_units(truth))
    return rule.classes * named / units, rule.box * moved / units, rule.centre * told / units


@pytest.mark.parametrize(
    "rule", [FCOSLoss(), FCOSLoss(2.0, 0.5, 0.3, 0.4, 1.5, radius=2.5, reach=5.0)], ids=["paper", "other"]
)
def test_equal_to_loops(rule: FCOSLoss) -> None:
    _, truth = make_rectangles(5)
    found = make_found(5)
    terms = rule(found, truth, torch.zeros(5, 0)).terms
    for name, value in zip(("classes", "box", "centre"), by_loops(found, truth, rule), strict=True):
        close(terms[name], value)


def test_of_two_boxes_the_smaller() -> None:
    truth = Boxes(
        torch.tensor([[[0.0, 0.0, 48.0, 48.0], [18.0, 18.0, 30.0, 30.0]]]), torch.tensor([[0, 1]]), torch.ones(1, 2)
    )
    found = make_found(1)
    match = match_points(found.points, found.strides, truth, 10.0, 100.0)[0]
    inside = ((found.points > 18) & (found.points < 30)).all(dim=1) & (found.strides == 4)
    assert (match[inside] == 1).all()
    assert (match >= 0).sum() > inside.sum()


def test_centreness() -> None:
    """1 in the middle, 0 at a side."""
    close(centreness(torch.tensor([[2.0, 3.0, 2.0, 3.0], [1.0, 2.0, 4.0, 2.0]])), torch.tensor([1.0, 0.5]))


def test_splitting_changes_nothing_and_no_object_is_fine() -> None:
    _, truth = make_rectangles(6)
    found, rule = make_found(6), FCOSLoss()
    whole, units = rule(found, truth, torch.zeros(6, 0)).terms, int(count_units(truth))
    for name, value in whole.items():
        parts = 0.0
        for rows in (slice(0, 1), slice(1, 4), slice(4, 6)):
            part = SimpleNamespace(**vars(found))
            part.logits, part.distances, part.centreness = (
                found.logits[rows],
                found.distances[rows],
                found.centreness[rows],
            )
            share = int(count_units(part_of(truth, rows))) / units
            parts += share * rule(part, part_of(truth, rows), torch.zeros(1, 0)).terms[name]
        close(parts, value)
    empty = Boxes(torch.zeros(1, 0, 4), torch.zeros(1, 0, dtype=torch.long), torch.zeros(1, 0))
    for nothing in (part_of(truth, slice(0, 1)), empty):
        alone = rule(make_found(1), nothing, torch.zeros(1, 0)).terms
        assert alone["box"] == alone["centre"] == 0
        assert alone["classes"] > 0
