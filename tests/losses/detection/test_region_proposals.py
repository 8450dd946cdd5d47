"""The loss of a region proposal network against loops over images and anchors, and its edges."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from descend.contracts import Boxes, count_units
from descend.losses.detection.region_proposals import RegionProposalLoss
from descend.ops.detection.anchors import make_anchors
from descend.ops.detection.sampling import draw_keys
from tests.close import close
from tests.rectangles import make_rectangles, part_of


def iou(a: np.ndarray, b: np.ndarray) -> float:
    w, h = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    both = max(w, 0) * max(h, 0)
    return both / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - both)


def make_found(images: int, seed: int = 0) -> SimpleNamespace:
    g = torch.Generator().manual_seed(seed)
    anchors = make_anchors(6, 6, 8, 16).double()
    n = len(anchors)
    return SimpleNamespace(
        objectness=torch.randn(images, n, generator=g, dtype=torch.float64),
        offsets=torch.randn(images, n, 4, generator=g, dtype=torch.float64),
        anchors=anchors,
    )


def by_loops(found: SimpleNamespace, truth: Boxes, u: torch.Tensor, rule: RegionProposalLoss) -> tuple[float, float]:
    named = moved = 0.0
    anchors = found.anchors.numpy()
    for i in range(len(truth.boxes)):
        boxes = truth.boxes[i][truth.classes[i] >= 0].double().numpy()
        table = np.array([[iou(a, b) for b in boxes] for a in anchors]).reshape(len(anchors), len(boxes))
        kinds, matched = [], []
        for a in range(len(anchors)):
            best = table[a].max() if len(boxes) else 0.0
            rescued = any(table[a, j] == table[:, j].max() > 0 for j in range(len(boxes)))
            kinds.append(1 if best >= rule.high or rescued else 0 if best < rule.low else -1)
            matched.append(int(table[a].argmax()) if len(boxes) else -1)
        keys = draw_keys(u[i : i + 1, 0], len(anchors))[0].numpy()
        order = np.argsort(keys, kind="stable")
        objects = [a for a in order if kinds[a] == 1][: int(rule.anchors * rule.share)]
        others = [a for a in order if kinds[a] == 0][: rule.anchors - len(objects)]
        s = len(objects) + len(others)
        for a in (*objects, *others):
            z = float(found.objectness[i, a])
            named += np.log1p(np.exp(-z if a in objects else z)) / s
        for a in objects:
            box, anchor = boxes[matched[a]], anchors[a]
            w, h = anchor[2] - anchor[0], anchor[3] - anchor[1]
            t = [
                (box[0] + box[2] - anchor[0] - anchor[2]) / 2 / w,
                (box[1] + box[3] - anchor[1] - anchor[3]) / 2 / h,
                np.log((box[2] - box[0]) / w),
                np.log((box[3] - box[1]) / h),
            ]
            r = np.abs(found.offsets[i, a].numpy() - t)
            moved += np.where(r < rule.beta, r**2 / (2 * rule.beta), r - rule.beta / 2).sum() / s
    units = float(count_units(truth))
    return rule.objectness * named / units, rule.box * moved / units


@pytest.mark.system("region-proposal-network")
@pytest.mark.system("region-proposal-network", "targets", "coding", "sampling")
@pytest.mark.parametrize(
    "rule",
    [RegionProposalLoss(), RegionProposalLoss(anchors=20, share=0.25, box=2.0, objectness=0.5, beta=1.0, high=0.5)],
    ids=["original", "other numbers"],
)
def test_equal_to_loops(rule: RegionProposalLoss) -> None:
    _, truth = make_rectangles(5)
    found, u = make_found(5), torch.rand(5, 1, generator=torch.Generator().manual_seed(3))
    terms = rule(found, truth, u).terms
    objectness, box = by_loops(found, truth, u, rule)
    close(terms["objectness"], objectness)
    close(terms["proposal_box"], box)


@pytest.mark.system("region-proposal-network", "anchors")
def test_anchors_of_a_map() -> None:
    """3 scales × 3 ratios at each of H W places, around the middles of the cells."""
    anchors = make_anchors(5, 7, 16, 32)
    assert len(anchors) == 9 * 5 * 7
    close(((anchors[:, :2] + anchors[:, 2:]) / 2)[9 * 8], torch.tensor([24.0, 24.0]))


@pytest.mark.system("region-proposal-network", "targets")
def test_splitting_changes_nothing_and_no_object_is_fine() -> None:
    """The first image has no object; the parts weigh as their units. A batch without any object has no box term."""
    _x, truth = make_rectangles(6)
    found, u = make_found(6), torch.rand(6, 1, generator=torch.Generator().manual_seed(3))
    rule = RegionProposalLoss(anchors=30)
    whole, units = rule(found, truth, u).terms, int(count_units(truth))
    for name, value in whole.items():
        parts = 0.0
        for rows in (slice(0, 1), slice(1, 4), slice(4, 6)):
            part = SimpleNamespace(**vars(found))
            part.objectness, part.offsets = found.objectness[rows], found.offsets[rows]
            share = int(count_units(part_of(truth, rows))) / units
            parts += share * rule(part, part_of(truth, rows), u[rows]).terms[name]
        close(parts, value)
    empty = Boxes(torch.zeros(1, 0, 4), torch.zeros(1, 0, dtype=torch.long), torch.zeros(1, 0))
    for nothing in (part_of(truth, slice(0, 1)), empty):
        alone = rule(make_found(1), nothing, u[:1]).terms
        assert alone["proposal_box"] == 0
        assert alone["objectness"] > 0
