"""The loss of RetinaNet against loops over images, anchors and classes."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from descend.contracts import Boxes, count_units
from descend.losses.detection.focal import FocalBoxLoss
from descend.ops.detection.anchors import make_anchors
from tests.close import close
from tests.losses.detection.test_region_proposals import iou
from tests.rectangles import make_rectangles, part_of

K = 3


def make_found(images: int) -> SimpleNamespace:
    g = torch.Generator().manual_seed(0)
    anchors = make_anchors(6, 6, 8, 16).double()
    shape = (images, len(anchors))
    return SimpleNamespace(
        logits=torch.randn(*shape, K, generator=g, dtype=torch.float64),
        offsets=torch.randn(*shape, 4, generator=g, dtype=torch.float64),
        anchors=anchors,
    )


def focal_by_hand(z: float, hot: bool, alpha: float, gamma: float) -> float:
    p = 1 / (1 + np.exp(-z))
    p, weight = (p, alpha) if hot else (1 - p, 1 - alpha)
    return -(weight if alpha else 1.0) * (1 - p) ** gamma * np.log(p)


def by_loops(found: SimpleNamespace, truth: Boxes, rule: FocalBoxLoss) -> tuple[float, float]:
    named = moved = 0.0
    anchors = found.anchors.numpy()
    for i in range(len(truth.boxes)):
        real = truth.classes[i] >= 0
        boxes, classes = truth.boxes[i][real].double().numpy(), truth.classes[i][real].tolist()
        table = np.array([[iou(a, b) for b in boxes] for a in anchors]).reshape(len(anchors), len(boxes))
        kind = {}
        for a in range(len(anchors)):
            best = table[a].max() if len(boxes) else 0.0
            rescued = any(table[a, j] == table[:, j].max() > 0 for j in range(len(boxes)))
            if best >= rule.high or rescued:
                kind[a] = int(table[a].argmax())
            elif best < rule.low:
                kind[a] = -1
        n, m = max(1, len(boxes)), max(1, sum(j >= 0 for j in kind.values()))
        for a, j in kind.items():
            for c in range(K):
                hot = j >= 0 and classes[j] == c
                named += n / m * focal_by_hand(float(found.logits[i, a, c]), hot, rule.alpha, rule.gamma)
            if j >= 0:
                (x0, y0, x1, y1), (p, q, r, s) = anchors[a], boxes[j]
                w, h = x1 - x0, y1 - y0
                t = [((p + r) - (x0 + x1)) / 2 / w, ((q + s) - (y0 + y1)) / 2 / h]
                t += [np.log((r - p) / w), np.log((s - q) / h)]
                moved += n / m * np.abs(found.offsets[i, a].numpy() - t).sum()
    units = int(count_units(truth))
    return rule.classes * named / units, rule.box * moved / units


@pytest.mark.system("focal-loss")
@pytest.mark.parametrize(
    "rule", [FocalBoxLoss(), FocalBoxLoss(2.0, 0.5, 0.0, 1.0, 0.6, 0.2)], ids=["RetinaNet", "no alpha"]
)
def test_equal_to_loops(rule: FocalBoxLoss) -> None:
    _, truth = make_rectangles(5)
    found = make_found(5)
    terms = rule(found, truth, torch.zeros(5, 0)).terms
    classes, box = by_loops(found, truth, rule)
    close(terms["classes"], classes)
    close(terms["box"], box)


def test_splitting_changes_nothing_and_no_object_is_fine() -> None:
    _, truth = make_rectangles(6)
    found, rule = make_found(6), FocalBoxLoss()
    whole, units = rule(found, truth, torch.zeros(6, 0)).terms, int(count_units(truth))
    for name, value in whole.items():
        parts = 0.0
        for rows in (slice(0, 1), slice(1, 4), slice(4, 6)):
            part = SimpleNamespace(logits=found.logits[rows], offsets=found.offsets[rows], anchors=found.anchors)
            share = int(count_units(part_of(truth, rows))) / units
            parts += share * rule(part, part_of(truth, rows), torch.zeros(1, 0)).terms[name]
        close(parts, value)
    empty = Boxes(torch.zeros(1, 0, 4), torch.zeros(1, 0, dtype=torch.long), torch.zeros(1, 0))
    for nothing in (part_of(truth, slice(0, 1)), empty):
        alone = rule(make_found(1), nothing, torch.zeros(1, 0)).terms
        assert alone["box"] == 0
        assert alone["classes"] > 0
