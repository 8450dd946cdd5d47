"""What a localiser shows: images with the true box and the predicted one."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from descend.contracts import Exhibit
from descend.data.images.labelled import Preprocessing, Splits
from descend.ops.boxes import box_iou
from descend.views.pixels import channels_last

SHOWN = 12  # images in the report
TRUE, FOUND = (0.1, 0.9, 0.2), (0.95, 0.1, 0.1)  # colours of the boxes


@torch.no_grad()
def show_boxes(model: Any, splits: Splits, boxes: Tensor, prepare: Preprocessing) -> list[Exhibit]:
    """The validation images with the lowest IoU, with both boxes drawn."""
    where, valid = next(model.parameters()).device, splits.valid
    found = [model(part.to(where)) for part in prepare(valid.x).split(256)]
    logits, box = (torch.cat([f[i] for f in found]).cpu() for i in (0, 1))
    true = boxes[valid.ids]
    fit = box_iou(box, true)
    worst = fit.argsort()[:SHOWN]
    drawn = draw_boxes(draw_boxes(valid.x[worst], true[worst], TRUE), box[worst], FOUND)
    captions = [
        f"{splits.labels[int(valid.y[i])]}, predicted {splits.labels[int(logits[i].argmax())]}, IoU {float(fit[i]):.2f}"
        for i in worst.tolist()
    ]
    content = {"images": channels_last(drawn), "captions": captions}
    return [
        Exhibit("images", "Boxes with the lowest IoU", content, "Validation images: true in green, predicted in red.")
    ]


def draw_boxes(pixels: Tensor, box: Tensor, colour: tuple[float, float, float]) -> Tensor:
    """Images (n, 3, h, w) with a line of one pixel along each box (n, 4), given as shares of the image."""
    h, w = pixels.shape[-2:]
    x0, y0, x1, y1 = (box * torch.tensor([w, h, w, h])).round().long().unbind(dim=1)
    x1, y1 = (x1 - 1).clamp_min(0), (y1 - 1).clamp_min(0)
    rows, columns = torch.arange(h)[None, :, None], torch.arange(w)[None, None, :]
    x0, y0, x1, y1 = (t[:, None, None] for t in (x0.clamp_max(w - 1), y0.clamp_max(h - 1), x1, y1))
    inside = (rows >= y0) & (rows <= y1) & (columns >= x0) & (columns <= x1)
    edge = inside & ((rows == y0) | (rows == y1) | (columns == x0) | (columns == x1))
    return torch.where(edge[:, None], torch.tensor(colour)[None, :, None, None], pixels)
