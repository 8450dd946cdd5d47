"""What a segmenter shows: its hardest images, the scores of every class, the confusion matrix of pixels."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from descend.contracts import Exhibit
from descend.data.images.labelled import Preprocessing
from descend.data.images.masks import Masked, MaskedSplits, MasksInOrder
from descend.metrics.segmentation import confusions, dice, iou, mean_iou, pixel_accuracy
from descend.weights.pretrained import Pretrained

SHOWN = 8  # images in the report

Crop = Callable[[Tensor, Tensor], Tensor]
"""masks (n, h, w), logits (n, c, h', w') -> the part of the masks that the logits are about (n, h', w')"""


@torch.no_grad()
def show_masks(model: Pretrained, splits: MaskedSplits, prepare: Preprocessing, crop: Crop) -> list[Exhibit]:
    """The images with the lowest mean IoU, truth beside prediction, and the scores of every class."""
    images, labels = splits.valid, list(splits.labels)
    answers, truth = predict_masks(model, images, prepare, crop)
    each = confusions(answers, truth, len(labels))
    c = each.sum(dim=0)
    worst = mean_iou(each).nan_to_num(2).argsort(stable=True)[:SHOWN]
    size = truth.shape[1:]
    pixels = crop(images.x[worst].flatten(0, 1), answers[:1, None]).unflatten(0, (len(worst), -1))
    shown = {
        "images": (pixels.float() / 255).numpy(),
        "truth": truth[worst].numpy(),
        "answers": answers[worst].numpy(),
        "labels": labels,
        "captions": [
            f"{splits.names[int(images.ids[i])]}: mean IoU {float(mean_iou(each[i])):.3f}" for i in worst.tolist()
        ],
    }
    shares = c.sum(dim=1) / c.sum().clamp(min=1)
    scores = zip(labels, iou(c).tolist(), dice(c).tolist(), shares.tolist(), strict=True)
    return [
        Exhibit("masks", "Hardest images", shown, f"Validation images of {size[0]}×{size[1]}, lowest mean IoU first."),
        Exhibit(
            "table",
            "Scores by class",
            {"columns": ["class", "IoU", "Dice", "share of pixels"], "rows": [list(row) for row in scores]},
            f"All validation pixels: mean IoU {float(mean_iou(c)):.4f}, pixel accuracy {float(pixel_accuracy(c)):.4f}.",
        ),
        Exhibit("confusion", "Confusion matrix", {"labels": labels, "counts": c.tolist()}, "Validation pixels."),
    ]


def predict_masks(model: Pretrained, images: Masked, prepare: Preprocessing, crop: Crop) -> tuple[Tensor, Tensor]:
    """The classes that the model gives to every pixel, and the true ones: (n, h', w') twice."""
    where = next(model.parameters()).device
    found = []
    for batch in MasksInOrder(images, prepare):
        logits = model(batch["x"].to(where))
        found.append((logits.argmax(dim=1).cpu().to(torch.uint8), crop(batch["y"], logits)))
    answers, truth = (torch.cat(part) for part in zip(*found, strict=True))
    return answers, truth
