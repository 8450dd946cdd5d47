from __future__ import annotations

import torch

from descend.metrics.boxes import box_iou
from tests.close import close


def test_iou_is_counting_pixels() -> None:
    random = torch.Generator().manual_seed(0)
    corner = torch.randint(0, 12, (40, 2, 2), generator=random)
    boxes = torch.cat([corner, corner + torch.randint(1, 12, (40, 2, 2), generator=random)], dim=-1)
    grid = torch.arange(24)

    def filled(box: torch.Tensor) -> torch.Tensor:
        x0, y0, x1, y1 = (t[:, None, None] for t in box.unbind(-1))
        return (grid >= x0) & (grid < x1) & (grid[:, None] >= y0) & (grid[:, None] < y1)

    a, b = filled(boxes[:, 0]), filled(boxes[:, 1])
    expected = (a & b).sum(dim=(1, 2)) / (a | b).sum(dim=(1, 2))
    close(box_iou(boxes[:, 0].float(), boxes[:, 1].float()), expected)
    assert float(box_iou(torch.tensor([3.0, 3, 1, 1]), torch.tensor([0.0, 0, 4, 4]))) == 0
    assert float(box_iou(torch.zeros(4), torch.zeros(4))) == 0
