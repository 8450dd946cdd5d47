"""SimOTA against a loop, and its promises: an object has a point, a point has one object."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from descend.ops.boxes import box_iou
from descend.ops.detection.distances import distances_to_boxes, make_points
from descend.ops.detection.sim_ota import Points, assign_sim_ota

pytestmark = pytest.mark.system("yolox-v7-v9")


def cost_by_hand(found: Points, i: int, p: int, box: Tensor, kind: int) -> tuple[float, float]:
    """Cost and IoU of one point for one object; infinite where it is no candidate."""
    x, y = found.points[p].tolist()
    x0, y0, x1, y1 = box.tolist()
    reach = 2.5 * float(found.strides[p])
    inside = x0 < x < x1 and y0 < y < y1
    near = max(abs(x - (x0 + x1) / 2), abs(y - (y0 + y1) / 2)) < reach
    if not (inside or near):
        return math.inf, 0.0
    iou, cost = float(box_iou(found.boxes[i, p], box)), 0.0
    for k, score in enumerate(found.scores[i, p].tolist()):
        cost -= math.log(max(math.sqrt(score), 1e-8) if k == kind else max(1 - math.sqrt(score), 1e-8))
    return cost - 3 * math.log(max(iou, 1e-8)) + (0 if inside and near else 1e5), iou


def assign_by_hand(found: Points, i: int, boxes: Tensor, kinds: list[int]) -> list[int]:
    n, taken = len(found.points), [(math.inf, -1)] * len(found.points)
    for j, kind in enumerate(kinds):
        if kind < 0:
            continue
        costs, ious = zip(*(cost_by_hand(found, i, p, boxes[j], kind) for p in range(n)), strict=True)
        k = max(int(sum(sorted(ious)[-10:])), 1)
        for p in sorted(range(n), key=lambda p: costs[p])[:k]:
            if costs[p] < taken[p][0]:
                taken[p] = (costs[p], j)
    return [j for _, j in taken]


def points_and_boxes(seed: int) -> tuple[Points, Tensor]:
    torch.manual_seed(seed)
    points, strides = make_points([(8, 8), (4, 4)], [8, 16], torch.zeros(()))
    boxes = distances_to_boxes(3 * torch.rand(2, len(points), 4, dtype=torch.float64) + 0.3, points, strides)
    found = Points(torch.rand(2, len(points), 3, dtype=torch.float64), boxes, points.double(), strides.double())
    low = 40 * torch.rand(2, 3, 2, dtype=torch.float64)
    return found, torch.cat([low, low + 10 + 20 * torch.rand(2, 3, 2, dtype=torch.float64)], dim=-1)


@pytest.mark.system("yolox-v7-v9", "sim-ota")
@pytest.mark.parametrize("seed", range(4))
def test_equal_to_a_loop(seed: int) -> None:
    found, boxes = points_and_boxes(seed)
    classes = torch.tensor([[0, 2, 1], [1, -1, -1]])
    owner, iou = assign_sim_ota(found, (boxes, classes))
    for i in range(2):
        expected = assign_by_hand(found, i, boxes[i], classes[i].tolist())
        real = {j for j, c in enumerate(classes[i].tolist()) if c >= 0}
        assert real <= set(expected)  # no object lost all its points here: the loop has no rescue
        assert owner[i].tolist() == expected
    assert ((iou > 0) <= (owner >= 0)).all()


@pytest.mark.system("yolox-v7-v9", "sim-ota")
@pytest.mark.parametrize("seed", range(5))
def test_every_object_has_a_point_and_no_point_has_two(seed: int) -> None:
    """Twelve objects in one place, tiny ones and huge ones."""
    found, _ = points_and_boxes(seed)
    sizes = torch.tensor([0.5, 1, 2, 3, 5, 8, 12, 16, 20, 30, 45, 60], dtype=torch.float64)
    middle = 30 + 4 * torch.rand(2, 12, 2, dtype=torch.float64)
    boxes = torch.cat([middle - sizes[:, None] / 2, middle + sizes[:, None] / 2], dim=-1)
    owner, _ = assign_sim_ota(found, (boxes, torch.randint(3, (2, 12))))
    for i in range(2):
        assert set(range(12)) <= set(owner[i].tolist())


def test_no_objects() -> None:
    found, boxes = points_and_boxes(0)
    for m in (0, 3):
        owner, iou = assign_sim_ota(found, (boxes[:, :m], torch.full((2, m), -1)))
        assert (owner == -1).all()
        assert (iou == 0).all()
