"""Detection: which objects, and where. One task for every detector: the model, its criterion, and COCO's scores.

    minimise Σ_k term_k          every term a sum over the images of a step, divided by Σ_i max(1, objects of image i)
    judge    AP of each class at IoU 0.50, 0.55, .., 0.95 over the whole set, and their means

The divisor depends on the truth alone, so accumulated = full batch = several processes, whatever the criterion assigns.
What was found is put back into the pixels of the original image before it is judged, as COCO's files have it. MF lists
non-maximum suppression under target assignment: a slip, it belongs to `decode`, after training (MF-C.79).

A batch has x (b, c, h, w), boxes (b, m, 4) in pixels of x, classes (b, m) padded with −1, and u (b, chance) where the
criterion draws. Held-out batches also have `back` and `size` (`data/detection/framing.py`), true_boxes (b, m, 4) in
pixels of the original image, crowd and area (b, m). A crowd is judged, and not learned.

Systems: detection-training-loop
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from descend.contracts import EVERY, Batch, Boxes, Criterion, Detects, Loss, Move, Task, count_units
from descend.data.detection.framing import to_original
from descend.metrics.detection.coco import judge_detections
from descend.metrics.detection.evidence import DetectionEvidence, collect

SIZES = ("small", "medium", "large")
LEAST, MOST = 0.001, 100  # COCO judges the best hundred objects of an image


class Detect(Task):
    """The model gives what its criterion needs, and makes objects of it (`contracts.Detects`)."""

    evidence = ("images", "sums")
    model: Any

    def __init__(self, model: Detects, criterion: Criterion, classes: int):
        super().__init__()
        self.model, self.criterion, self.classes = model, criterion, classes

    def moves(self, batch: Batch) -> Iterator[Move]:
        truth = read_truth(batch)

        def loss() -> Loss:
            return self.criterion(self.model(batch["x"]), truth, read_numbers(batch))

        yield Move("model", loss, {EVERY: count_units(truth)})

    def score(self, batch: Batch) -> dict[str, Any]:
        truth, found = read_truth(batch), self.model(batch["x"])
        units = count_units(truth).double()
        total = self.criterion(found, truth, read_numbers(batch)).total().double()
        images = collect_evidence(self.model.decode(found, LEAST, MOST), batch)
        return {"images": images, "sums": torch.stack([total * units, units])[None]}

    def judge(self, means: dict[str, float], evidence: dict[str, Any]) -> dict[str, float]:
        """COCO's scores of the set, and the loss over all its objects."""
        total, units = evidence["sums"].sum(dim=0).tolist()
        scores = judge_detections(evidence["images"], self.classes).numbers()
        named = {f"map_{name}" if name in SIZES else name: value for name, value in scores.items()}
        return {"map": 0.0, "map50": 0.0, **named, "loss": total / units}


def read_truth(batch: Batch) -> Boxes:
    """The true objects of a batch, without crowds."""
    classes = batch["classes"]
    if "crowd" in batch:
        classes = classes.masked_fill(batch["crowd"], -1)
    return Boxes(batch["boxes"], classes, (classes >= 0).to(batch["x"].dtype))


def read_numbers(batch: Batch) -> Tensor:
    """The random numbers that came with the images (b, chance); none where none were asked for."""
    return batch["u"] if "u" in batch else batch["x"].new_empty(len(batch["x"]), 0)


def collect_evidence(found: Boxes, batch: Batch) -> list[DetectionEvidence]:
    """What was found in each image and what is there, in pixels of the original image."""
    boxes = to_original(found.boxes, batch["back"], batch["size"])
    truth = Boxes(batch["true_boxes"], batch["classes"], torch.ones_like(batch["area"]))
    return collect(found._replace(boxes=boxes), truth, batch["crowd"], batch["area"])
