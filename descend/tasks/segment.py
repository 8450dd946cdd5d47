"""Semantic segmentation: a class for every pixel, as classification of each one.

    logits (b, K, h, w),  p = softmax over K,  answer = argmax over K,  truth y (b, h, w) of class numbers
    minimise (1/b) Σ_i [ cross-entropy of image i, weighted by class  +  λ · Dice loss of image i ]

The mean is over images, so micro-batches add up to the batch. Scores count pixels, image by image; the accuracy and the
mean IoU of the set follow from the sums (`derive`), so they are exact for any batching. What is scored is not weighted.
A model without padding answers for the middle of the image: the truth is cut to it.

Systems: semantic-segmentation-task
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from torch import Tensor, nn

from descend.losses.segmentation import VOID, dice_loss, mask_cross_entropy
from descend.metrics.segmentation import areas, confusions


class Segment(nn.Module):
    """A batch is images x (b, c, h, w) and masks y (b, h, w); the model makes logits (b, classes, h', w') of x."""

    players = ("model",)
    weight: Tensor

    def __init__(self, model: nn.Module, weight: Tensor, dice: float = 0.0):
        super().__init__()
        self.model, self.dice = model, dice
        self.register_buffer("weight", weight, persistent=False)

    def loss(self, logits: Tensor, y: Tensor) -> Tensor:
        """Of each image (b)."""
        losses = mask_cross_entropy(logits, y, self.weight)
        return losses + self.dice * dice_loss(logits, y) if self.dice else losses

    def moves(self, batch: dict[str, Tensor]) -> Iterator[tuple[str, Callable[[], Tensor]]]:
        def loss() -> Tensor:
            logits = self.model(batch["x"])
            return self.loss(logits, middle(batch["y"], logits)).mean()

        yield "model", loss

    def score(self, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        logits = self.model(batch["x"])
        y = middle(batch["y"], logits)
        both, either = areas(confusions(logits.argmax(dim=1), y, logits.shape[1]))
        counts = {"right": both.sum(dim=1), "pixels": (y != VOID).sum(dim=(1, 2))}
        for k, (i, u) in enumerate(zip(both.unbind(1), either.unbind(1), strict=True)):
            counts |= {f"both_{k}": i, f"either_{k}": u}
        return {"loss": mask_cross_entropy(logits, y), **counts}

    def derive(self, means: dict[str, float]) -> dict[str, float]:
        """Loss, pixel accuracy and mean IoU of a set, from the means of its images' counts."""
        occur = [k for k in range(len(self.weight)) if means[f"either_{k}"]]
        ious = [means[f"both_{k}"] / means[f"either_{k}"] for k in occur]
        found = {"loss": means["loss"], "accuracy": means["right"] / max(means["pixels"], 1e-12)}
        return found | {"mean_iou": sum(ious) / max(len(ious), 1)}


def middle(y: Tensor, logits: Tensor) -> Tensor:
    """The part of the masks that the logits are about."""
    height, width = logits.shape[2:]
    top, left = (y.shape[1] - height) // 2, (y.shape[2] - width) // 2
    return y[:, top : top + height, left : left + width]
