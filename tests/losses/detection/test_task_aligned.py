"""The loss of YOLOv8: its distribution term, what it keeps, and that a model learns by it."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from descend.losses.detection.task_aligned import TaskAligned, distribution_focal
from descend.models.yolo_v8 import TINY, YoloV8
from tests.close import close
from tests.losses.detection.scenes import check_empty, check_split, draw_scenes

pytestmark = pytest.mark.system("yolo-v8")


@pytest.mark.system("yolo-v8", "distribution-focal")
def test_distribution_focal() -> None:
    """At a bin it is the cross-entropy; between two it mixes both; it is least where the mean is the distance."""
    torch.manual_seed(0)
    z = torch.randn(5, 8, dtype=torch.float64)
    at = torch.tensor([0.0, 1.0, 3.0, 6.0, 2.0], dtype=torch.float64)
    close(distribution_focal(z, at), F.cross_entropy(z, at.long(), reduction="none"))
    between = 0.75 * F.cross_entropy(z, at.long(), reduction="none")
    between += 0.25 * F.cross_entropy(z, at.long() + 1, reduction="none")
    close(distribution_focal(z, at + 0.25), between)
    assert torch.autograd.gradcheck(lambda z: distribution_focal(z, at + 0.25), (z.requires_grad_(),))
    z = torch.zeros(1, 8, requires_grad=True)
    rule = torch.optim.LBFGS([z], max_iter=100)
    rule.step(lambda: (rule.zero_grad(), loss := distribution_focal(z, torch.tensor([2.3])).sum(), loss.backward())[1])
    close(z.softmax(-1)[0, 2:4], torch.tensor([0.7, 0.3]), loosen=100)  # the optimizer's accuracy


def test_splits_and_empty_images() -> None:
    torch.manual_seed(0)
    model = YoloV8(TINY)
    x, truth = draw_scenes()
    check_split(model(x), truth, TaskAligned())
    check_empty(model, TaskAligned())


def test_no_gradient_through_the_choice() -> None:
    """Targets are constants: the gradient is that of the terms alone, as differences tell."""
    torch.manual_seed(0)
    model, (x, truth) = YoloV8(TINY).double().eval(), draw_scenes(2)
    found = model(x.double())
    truth = truth._replace(boxes=truth.boxes.double())
    step = torch.zeros(4, dtype=torch.float64, requires_grad=True)  # all points at once

    def loss(step: torch.Tensor) -> tuple[torch.Tensor, ...]:
        moved = found._replace(sides=found.sides.detach() + step, logits=found.logits.detach() + step[:3])
        return tuple(TaskAligned(alpha=0.0)(moved, truth, torch.zeros(2, 0)).terms.values())

    assert torch.autograd.gradcheck(loss, (step,))
