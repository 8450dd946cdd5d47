"""The multibox loss against loops over images and default boxes, hard negative mining, and its edges."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from descend.contracts import Boxes, count_units
from descend.losses.detection.multibox import MultiBoxLoss, find_hard
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
        logits=torch.randn(*shape, K + 1, generator=g, dtype=torch.float64),
        offsets=torch.randn(*shape, 4, generator=g, dtype=torch.float64),
        anchors=anchors,
    )


def by_loops(found: SimpleNamespace, truth: Boxes, rule: MultiBoxLoss) -> tuple[float, float]:
    named = moved = 0.0
    anchors = found.anchors.numpy()
    for i in range(len(truth.boxes)):
        real = truth.classes[i] >= 0
        boxes, classes = truth.boxes[i][real].double().numpy(), truth.classes[i][real].tolist()
        match = {}
        for a in range(len(anchors)):
            overlaps = [iou(anchors[a], box) for box in boxes]
            if overlaps and max(overlaps) >= rule.high:
                match[a] = int(np.argmax(overlaps))
        for j, box in enumerate(boxes):  # no two boxes have the same best here
            match[int(np.argmax([iou(a, box) for a in anchors]))] = j
        log_p = found.logits[i].log_softmax(-1).numpy()
        others = sorted((a for a in range(len(anchors)) if a not in match), key=lambda a: log_p[a, 0])
        m, n = max(1, len(match)), max(1, len(boxes))
        chosen = sum(-log_p[a, 0] for a in others[: int(rule.negatives * m)])
        chosen += sum(-log_p[a, classes[j] + 1] for a, j in match.items())
        named += n / m * chosen
        for a, j in match.items():
            (x0, y0, x1, y1), (p, q, r, s) = anchors[a], boxes[j]
            w, h = x1 - x0, y1 - y0
            t = [10 * ((p + r) - (x0 + x1)) / 2 / w, 10 * ((q + s) - (y0 + y1)) / 2 / h]
            t += [5 * np.log((r - p) / w), 5 * np.log((s - q) / h)]
            e = np.abs(found.offsets[i, a].numpy() - t)
            moved += n / m * np.where(e < rule.beta, e**2 / (2 * rule.beta), e - rule.beta / 2).sum()
    units = int(count_units(truth))
    return rule.classes * named / units, rule.box * moved / units


@pytest.mark.system("ssd")
@pytest.mark.system("ssd", "multibox-loss", "matching", "mining")
@pytest.mark.parametrize("rule", [MultiBoxLoss(), MultiBoxLoss(2.0, 0.5, 0.4, 1.0, 0.2)], ids=["paper", "other"])
def test_equal_to_loops(rule: MultiBoxLoss) -> None:
    _, truth = make_rectangles(5)
    found = make_found(5)
    terms = rule(found, truth, torch.zeros(5, 0)).terms
    classes, box = by_loops(found, truth, rule)
    close(terms["classes"], classes)
    close(terms["box"], box)


@pytest.mark.system("ssd", "matching")
def test_a_small_object_has_its_best_default_box() -> None:
    """No default box overlaps it by a half; the best one learns it all the same."""
    found = make_found(1)
    found.logits.requires_grad_()
    truth = Boxes(torch.tensor([[[20.0, 20.0, 24.0, 25.0]]]), torch.tensor([[2]]), torch.ones(1, 1))
    assert max(iou(a, truth.boxes[0, 0].numpy()) for a in found.anchors.numpy()) < 0.5
    MultiBoxLoss()(found, truth, torch.zeros(1, 0)).total().backward()
    pulled = (found.logits.grad[0, :, 3] < 0).nonzero()[:, 0]  # towards class 2, which is number 3
    best = int(np.argmax([iou(a, truth.boxes[0, 0].numpy()) for a in found.anchors.numpy()]))
    assert pulled.tolist() == [best]


@pytest.mark.system("ssd", "mining")
def test_three_hard_ones_for_each_matched() -> None:
    losses = torch.tensor([[5.0, 1.0, 4.0, 3.0, 2.0, 6.0], [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]])
    may = torch.tensor([[True, True, True, True, True, False], [True, True, False, False, False, False]])
    hard = find_hard(losses, may, torch.tensor([[3], [3]]))
    assert hard.tolist() == [[True, False, True, True, False, False], [True, True, False, False, False, False]]


@pytest.mark.system("ssd", "training")
def test_splitting_changes_nothing_and_no_object_is_fine() -> None:
    _, truth = make_rectangles(6)
    found, rule = make_found(6), MultiBoxLoss()
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
        three = (-make_found(1).logits.log_softmax(-1)[0, :, 0]).topk(3).values.sum()
        close(alone["classes"], three)
