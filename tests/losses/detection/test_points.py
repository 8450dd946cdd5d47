"""One loss for detectors of points: every assigner and every overlap splits, bears empty images and learns."""

from __future__ import annotations

from typing import Literal

import pytest
import torch

from descend.losses.detection.points import CentreCell, PointLoss, SimOta, TaskAlignment
from descend.models.yolo_x import TINY, YoloX
from descend.ops.detection.distances import make_points
from descend.ops.detection.sim_ota import Points
from tests.losses.detection.scenes import check_empty, check_split, draw_scenes

pytestmark = pytest.mark.system("yolox-v7-v9")
ASSIGNERS = (SimOta(), TaskAlignment(), CentreCell())
OVERLAPS: tuple[Literal["iou", "giou", "diou", "ciou"], ...] = ("iou", "giou", "diou", "ciou")


@pytest.mark.system("yolox-v7-v9", "configurable")
@pytest.mark.parametrize("assign", ASSIGNERS, ids=lambda a: type(a).__name__)
def test_splits_and_empty_images(assign: SimOta | TaskAlignment | CentreCell) -> None:
    torch.manual_seed(0)
    model = YoloX(TINY)
    x, truth = draw_scenes()
    for overlap in OVERLAPS:
        check_split(model(x), truth, PointLoss(overlap=overlap, assign=assign))
    check_empty(model, PointLoss(assign=assign))


def test_the_cell_of_the_centre() -> None:
    """An object of 32 pixels and 4 cells belongs to stride 8; its centre (20, 28) to column 2, row 3."""
    points, strides = make_points([(8, 8), (4, 4)], [8, 16], torch.zeros(()))
    _, truth = draw_scenes(1)
    truth = truth._replace(boxes=torch.tensor([[[4.0, 12.0, 36.0, 44.0]] * 3]), classes=torch.tensor([[1, -1, -1]]))
    found = Points(torch.rand(1, len(points), 3), torch.rand(1, len(points), 4), points, strides)
    assert CentreCell()(found, truth).tolist()[0].index(0) == 3 * 8 + 2
    large = truth._replace(boxes=2 * truth.boxes)
    assert CentreCell()(found, large).tolist()[0].index(0) == 64 + 3 * 4 + 2
