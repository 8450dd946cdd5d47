"""Worked examples of boxes, their overlap, suppression, anchors and assignment."""

from __future__ import annotations

import torch

from descend.catalog.examples import Compute, Inputs, real
from descend.metrics.detection.coco import THRESHOLDS
from descend.ops.boxes import area, box_iou, intersection
from descend.ops.detection.anchors import SCALES, make_anchors, make_grid
from descend.ops.detection.hungarian import assign, greedy_assign, total_cost
from descend.ops.nms import nms


def anchor_centre(i: Inputs) -> Inputs:
    grid = make_grid(13, 13, i["s"]).view(13, 13, 2)
    return {"center": grid[i["i"], i["j"]].long()}


def anchor_count(i: Inputs) -> Inputs:
    assert len(SCALES) == i["n_scales"]
    anchors = make_anchors(i["grid"], i["grid"], 32, 32.0, i["ratios"])
    return {"anchors": len(anchors), "scales": list(SCALES)}


def overlap(i: Inputs) -> Inputs:
    a, b = real(i["box1"]), real(i["box2"])
    both = intersection(a, b)
    dx, dy = (torch.minimum(a, b)[2:] - torch.maximum(a, b)[:2]).tolist()
    whole = {"dx": dx, "dy": dy, "intersection": both, "area1": area(a), "area2": area(b)}
    return {**{k: int(v) for k, v in whole.items()}, "union": int(area(a) + area(b) - both), "iou": box_iou(a, b)}


def first_pair(i: Inputs) -> Inputs:
    """B3 and B4 are B1 and B2 shifted. The printed fraction is evaluated as it stands."""
    a, b = real(i["B1"]), real(i["B2"])
    both, shifted = intersection(a, b), box_iou(a + 300, b + 300)
    printed = float(area(a)) / (float(area(a)) + float(area(b)) - 10000 + 5 * 100 * 2)
    return {
        "iou_b1_b2": box_iou(a, b),
        "iou_b3_b4": shifted,
        "intersection": int(both),
        "union": int(area(a) + area(b) - both),
        "value_of_the_printed_fraction": printed,
    }


def suppression(i: Inputs) -> Inputs:
    return {"keep": [f"B{k + 1}" for k in nms(real(i["boxes"]), real(i["scores"]), i["tau"]).tolist()]}


def thresholds(i: Inputs) -> Inputs:
    assert float(THRESHOLDS[0]) == i["start"]
    return {"count": len(THRESHOLDS), "thresholds": THRESHOLDS}


def matching(i: Inputs) -> Inputs:
    """Predictions from 1, objects from 0."""
    cost = real(i["C"])
    rows, columns = assign(cost)
    taken, given = greedy_assign(cost)
    left = set(range(len(cost))) - set(rows.tolist())
    steps = cost[taken, given]
    pairs = lambda a, b: sorted([r + 1, c] for r, c in zip(a.tolist(), b.tolist(), strict=True))
    return {
        "assignment_pred1based_gt0based": pairs(rows, columns),
        "greedy": pairs(taken, given),
        "optimal_cost": total_cost(cost, rows, columns),
        "greedy_cost": total_cost(cost, taken, given),
        "first_min": steps[0],
        "second_min": steps[1],
        "unmatched_pred_1based": left.pop() + 1,
    }


def greedy_gap(i: Inputs) -> Inputs:
    cost = real(i["C_counterexample"])
    best, greedy = assign(cost), greedy_assign(cost)
    pairs = lambda found: [list(pair) for pair in zip(*(x.tolist() for x in found), strict=True)]
    costs = [int(total_cost(cost, *found)) for found in (greedy, best)]
    return {
        "greedy_pairs": pairs(greedy),
        "greedy_cost": costs[0],
        "optimal_pairs": pairs(best),
        "optimal_cost": costs[1],
        "greedy_equals_optimal": costs[0] == costs[1],
    }


EXAMPLES: dict[str, Compute] = {
    "MF-23.1.2-anchor-center": anchor_centre,
    "MF-23.1.3-anchor-count": anchor_count,
    "MF-23.2.3-iou": overlap,
    "MF-23.3.3-iou-b1b2": first_pair,
    "MF-23.3.3-nms": suppression,
    "MF-23.4.2-coco-thresholds": thresholds,
    "MF-25.3.4-matching": matching,
    "MF-25.3.3-greedy-not-optimal": greedy_gap,
}

SET_ASIDE: dict[str, str] = {}
