"""Task-aligned assignment against a loop over points and objects."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from descend.ops.boxes import box_iou
from descend.ops.detection.distances import distances_to_boxes, make_points
from descend.ops.detection.task_alignment import align_tasks
from tests.close import close

pytestmark = pytest.mark.system("yolo-v8")


def assign_by_hand(
    scores: Tensor, boxes: Tensor, points: Tensor, true: Tensor, classes: list[int], k: int
) -> tuple[list[int], list[float]]:
    """One image, with lists."""
    n, real = len(points), [j for j, c in enumerate(classes) if c >= 0]
    iou = [[float(box_iou(boxes[i], box)) for box in true] for i in range(n)]
    align = [[float(scores[i, max(c, 0)]) ** 0.5 * iou[i][j] ** 6 for j, c in enumerate(classes)] for i in range(n)]
    taken: list[list[int]] = [[] for _ in range(n)]
    for j in real:
        x0, y0, x1, y1 = true[j].tolist()
        inside = [i for i, (x, y) in enumerate(points.tolist()) if x0 < x < x1 and y0 < y < y1]
        if not inside:
            middle = torch.tensor([(x0 + x1) / 2, (y0 + y1) / 2])
            inside = [int((points - middle).norm(dim=1).argmin())]
        for i in sorted(inside, key=lambda i: -align[i][j])[:k]:
            taken[i].append(j)
    owner = [max(js, key=lambda j: iou[i][j]) if js else -1 for i, js in enumerate(taken)]
    target = [0.0] * n
    for j in real:
        mine = [i for i in range(n) if owner[i] == j]
        for i in mine:
            target[i] = align[i][j] / max(align[m][j] for m in mine) * max(iou[m][j] for m in mine)
    return owner, target


@pytest.mark.system("yolo-v8", "task-aligned")
@pytest.mark.parametrize("seed", range(4))
def test_equal_to_a_loop(seed: int) -> None:
    torch.manual_seed(seed)
    points, strides = make_points([(8, 8), (4, 4)], [8, 16], torch.zeros(()))
    n, double = len(points), torch.float64
    scores = torch.rand(3, n, 3, dtype=double)
    boxes = distances_to_boxes(4 * torch.rand(3, n, 4, dtype=double) + 0.2, points, strides)
    low = 40 * torch.rand(3, 4, 2, dtype=double)
    true = torch.cat([low, low + 2 + 30 * torch.rand(3, 4, 2, dtype=double)], dim=-1)
    true[0, 1] = true[0, 0] + 1.5  # nearly the same place: conflicts
    true[1, 0] = torch.tensor([9.0, 9.0, 10.0, 10.0])  # no point inside
    classes = torch.tensor([[0, 1, 2, -1], [1, 1, -1, -1], [-1, -1, -1, -1]])
    found = align_tasks((scores, boxes, points), (true, classes), 5, 0.5, 6.0)
    for i in range(3):
        owner, target = assign_by_hand(scores[i], boxes[i], points, true[i], classes[i].tolist(), 5)
        assert found.owner[i].tolist() == owner
        if any(target):
            close(found.target[i], torch.tensor(target, dtype=double))
        else:
            assert not found.target[i].any()


def test_the_best_point_is_asked_for_its_iou() -> None:
    points, _ = make_points([(4, 4)], [8], torch.zeros(()))
    boxes = torch.tensor([4.0, 4.0, 28.0, 28.0]).expand(1, 16, 4)
    truth = torch.tensor([[[4.0, 4.0, 28.0, 16.0]]]), torch.tensor([[1]])
    found = align_tasks((torch.full((1, 16, 2), 0.5), boxes, points), truth, 3, 0.5, 6.0)
    assert found.positive.nonzero().tolist() == [[0, 5], [0, 6]]  # no others lie strictly inside
    close(found.target[found.positive], torch.full((2,), 0.5))


def test_no_objects() -> None:
    points, _ = make_points([(2, 2)], [8], torch.zeros(()))
    none = torch.zeros(1, 0, 4), torch.zeros(1, 0).long()
    found = align_tasks((torch.rand(1, 4, 3), torch.rand(1, 4, 4), points), none, 3, 0.5, 6.0)
    assert found.owner.tolist() == [[-1] * 4]
    assert not found.positive.any()
