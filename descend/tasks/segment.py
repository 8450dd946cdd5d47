"""Semantic segmentation: a class for every pixel, as classification of each one.

    logits (b, K, h, w),  p = softmax over K,  answer = argmax over K,  truth y (b, h, w) of class numbers
    minimise (1/b) Σ_i [ cross-entropy of image i, weighted by class  +  λ · Dice loss of image i ]

The mean is over images, so micro-batches add up to the batch. The evidence of an image is its confusion matrix; pixel
accuracy and mean IoU are judged on the sum over the set, so they are exact for any batching. What is scored is not
weighted.
A model without padding answers for the middle of the image: the truth is cut to it.

Systems: semantic-segmentation-task
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch import Tensor, nn

from descend.contracts import Batch, Loss, Move, Task
from descend.losses.segmentation import dice_loss, mask_cross_entropy
from descend.metrics.segmentation import confusions, mean_iou, pixel_accuracy


class Segment(Task):
    """A batch is images x (b, c, h, w) and masks y (b, h, w); the model makes logits (b, classes, h', w') of x."""

    evidence = ("confusion",)
    weight: Tensor

    def __init__(self, model: nn.Module, weight: Tensor, dice: float = 0.0):
        super().__init__()
        self.model, self.dice = model, dice
        self.register_buffer("weight", weight, persistent=False)

    def moves(self, batch: Batch) -> Iterator[Move]:
        def loss() -> Loss:
            logits = self.model(batch["x"])
            y = middle(batch["y"], logits)
            terms = {"cross_entropy": mask_cross_entropy(logits, y, self.weight).mean()}
            return Loss(terms | ({"dice": self.dice * dice_loss(logits, y).mean()} if self.dice else {}))

        yield Move("model", loss)

    def score(self, batch: Batch) -> dict[str, Tensor]:
        logits = self.model(batch["x"])
        y = middle(batch["y"], logits)
        found = confusions(logits.argmax(dim=1), y, logits.shape[1])
        return {"loss": mask_cross_entropy(logits, y), "confusion": found}

    def judge(self, means: dict[str, float], evidence: dict[str, Any]) -> dict[str, float]:
        """Pixel accuracy and mean IoU of all pixels of a set."""
        whole = evidence["confusion"].sum(dim=0)
        return {**means, "accuracy": float(pixel_accuracy(whole)), "mean_iou": float(mean_iou(whole))}


def middle(y: Tensor, logits: Tensor) -> Tensor:
    """The part of the masks that the logits are about."""
    height, width = logits.shape[2:]
    top, left = (y.shape[1] - height) // 2, (y.shape[2] - width) // 2
    return y[:, top : top + height, left : left + width]
