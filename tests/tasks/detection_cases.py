"""A detector of one convolution for the tests of tasks: no batch norm, so that a batch can be split."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from descend.contracts import Batch, Boxes, Task
from descend.losses.detection.task_aligned import TaskAligned
from descend.models.yolo_v8 import FoundDistances
from descend.ops.detection.distances import distances_to_boxes, expected_distance, make_points
from descend.ops.nms import keep_best
from descend.tasks.detect import Detect

B, CLASSES, BINS, SIDE, STRIDE = 8, 3, 4, 32, 8


class OneConvolution(nn.Module):
    """images (b, 3, 32, 32) -> `FoundDistances` at 16 points"""

    stride = STRIDE

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Conv2d(3, CLASSES + 4 * BINS, STRIDE, STRIDE)

    def forward(self, x: Tensor) -> FoundDistances:
        z = self.layer(x)
        points, strides = make_points([(z.shape[2], z.shape[3])], (STRIDE,), x)
        z = z.flatten(2).mT
        sides = z[..., CLASSES:].unflatten(-1, (4, BINS))
        distances = expected_distance(sides, torch.arange(BINS, dtype=x.dtype))
        return FoundDistances(z[..., :CLASSES], sides, distances_to_boxes(distances, points, strides), points, strides)

    def decode(self, found: FoundDistances, least: float = 0.001, most: int = 100) -> Boxes:
        scores, classes = found.logits.sigmoid().max(dim=-1)
        return keep_best(found.boxes, scores, classes, 0.65, least, most)


def objects(n: int = B) -> Batch:
    """Images of 0 to 3 objects, each image in its own size, framed by a half."""
    random = torch.Generator().manual_seed(1)
    corner = 20 * torch.rand(n, 3, 2, generator=random)
    boxes = torch.cat([corner, corner + 4 + 8 * torch.rand(n, 3, 2, generator=random)], dim=-1)
    classes = torch.randint(CLASSES, (n, 3), generator=random)
    classes[torch.arange(3) >= (torch.arange(n) % 4)[:, None]] = -1
    return {"x": torch.randn(n, 3, SIDE, SIDE, generator=random), "boxes": boxes, "classes": classes}


def held_out(n: int = B) -> Batch:
    """The same, with all that judging needs: images twice as large as the input."""
    batch = objects(n)
    true = 2 * batch["boxes"]
    area = (true[..., 2:] - true[..., :2]).prod(dim=-1)
    back = torch.tensor([0.5, 0.5, 0.0, 0.0]).expand(n, 4)
    more = {"back": back, "size": torch.full((n, 2), 2 * SIDE), "true_boxes": true, "area": area}
    return {**batch, **more, "crowd": torch.zeros(n, 3, dtype=torch.bool), "ids": torch.arange(n)}


def detect() -> tuple[Task, Batch]:
    return Detect(OneConvolution(), TaskAligned(), CLASSES), objects()


CASES = {"Detect": detect}
