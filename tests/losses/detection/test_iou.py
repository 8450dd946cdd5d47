from __future__ import annotations

import pytest
import torch

from descend.losses.detection.iou import ciou_loss, diou_loss, giou_loss, iou_loss
from descend.ops.boxes import box_iou
from descend.ops.iou import complete_iou, distance_iou, generalized_iou
from tests.close import close

LOSSES = {iou_loss: box_iou, giou_loss: generalized_iou, diou_loss: distance_iou, ciou_loss: complete_iou}
TRUTH = torch.tensor([40.0, 40.0, 60.0, 70.0], dtype=torch.float64)


@pytest.mark.system("iou-losses", "losses")
@pytest.mark.parametrize("loss", LOSSES)
def test_one_minus_the_form(loss) -> None:  # type: ignore[no-untyped-def]
    boxes = torch.rand(20, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64).sort(dim=1).values * 100
    boxes = boxes[:, [0, 1, 2, 3]]
    close(loss(boxes, TRUTH), 1 - LOSSES[loss](boxes, TRUTH))
    assert float(loss(TRUTH, TRUTH)) == pytest.approx(0, abs=1e-12)


@pytest.mark.system("iou-losses", "descent")
@pytest.mark.parametrize("loss", LOSSES)
def test_descent_brings_a_far_box_home(loss) -> None:  # type: ignore[no-untyped-def]
    """From a box that does not touch the truth: 1 − IoU does not move it, the others bring it to IoU > 0.9."""
    start = torch.tensor([5.0, 5.0, 20.0, 15.0], dtype=torch.float64)
    box = start.clone().requires_grad_()
    rule = torch.optim.Adam([box], lr=0.5)
    for _ in range(600):
        rule.zero_grad()
        loss(box, TRUTH).backward()
        rule.step()
    reached = float(box_iou(box.detach(), TRUTH))
    assert (reached == 0 and torch.equal(box.detach(), start)) if loss is iou_loss else reached > 0.9
