"""Random sets of detections with everything that is rare: crowds, ties, empty images, classes without objects."""

from __future__ import annotations

import contextlib
import io
from typing import Any

import numpy as np
import torch
from torch import Tensor

from descend.metrics.detection.evidence import DetectionEvidence

CLASSES = 5


def random_set(seed: int, images: int = 25, coarse: bool = False, classes: int = CLASSES) -> list[DetectionEvidence]:
    """The last class is never true, the one before never found."""
    random = torch.Generator().manual_seed(seed)

    def number(n: int) -> int:
        return int(torch.randint(0, n + 1, (1,), generator=random))

    def boxes(n: int) -> Tensor:
        size = 2.0 ** (3 + 4.5 * torch.rand(n, 2, generator=random, dtype=torch.float64))
        low = torch.rand(n, 2, generator=random, dtype=torch.float64) * 100
        both = torch.cat([low, low + size], dim=-1)
        return (both / 16).round() * 16 if coarse else both

    evidence = []
    for image in range(images):
        m = 0 if image % 7 == 3 else number(9)
        truth, kinds = boxes(m), torch.randint(0, classes - 1, (m,), generator=random)
        crowd = torch.rand(m, generator=random) < 0.2
        areas = (truth[:, 2:] - truth[:, :2]).prod(dim=1) * (0.4 + 0.6 * torch.rand(m, generator=random).double())
        near = truth[torch.randint(0, m, (number(3 * m),), generator=random)] if m else truth
        jitter = 12 * torch.randn(near.shape, generator=random, dtype=torch.float64)
        near = near + (jitter / 16).round() * 16 if coarse else near + jitter / 2
        near[:, 2:] = torch.maximum(near[:, 2:], near[:, :2] + 1)
        found = torch.cat([near, boxes(0 if image % 5 == 2 else number(6))])
        named = torch.randint(0, classes, (len(found),), generator=random)
        named[named == classes - 2] = 0
        scores = torch.rand(len(found), generator=random, dtype=torch.float64)
        scores = (scores * 6).round() / 6 if coarse else scores
        evidence.append(DetectionEvidence(found, named, scores, truth, kinds, crowd, areas))
    return evidence


def as_coco(evidence: list[DetectionEvidence], classes: int = CLASSES) -> Any:
    """pycocotools' evaluation of the same set, accumulated."""
    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval

    def corner_size(box: Tensor) -> list[float]:
        x0, y0, x1, y1 = box.tolist()
        return [x0, y0, x1 - x0, y1 - y0]

    annotations: list[dict[str, Any]] = []
    results: list[dict[str, Any]] = []
    for image, e in enumerate(evidence):
        for box, kind, crowd, size in zip(e.true_boxes, e.true_classes, e.crowd, e.area, strict=True):
            annotations.append({
                "id": len(annotations) + 1, "image_id": image, "category_id": int(kind), "bbox": corner_size(box),
                "iscrowd": int(crowd), "area": float(size),
            })  # fmt: skip
        for box, kind, score in zip(e.boxes, e.classes, e.scores, strict=True):
            results.append({
                "image_id": image, "category_id": int(kind), "bbox": corner_size(box), "score": float(score)
            })  # fmt: skip
    with contextlib.redirect_stdout(io.StringIO()):
        truth = COCO()
        truth.dataset = {
            "images": [{"id": k} for k in range(len(evidence))],
            "annotations": annotations,
            "categories": [{"id": k} for k in range(classes)],
            "info": {},
        }
        truth.createIndex()
        judge = COCOeval(truth, truth.loadRes(results), "bbox")
        judge.evaluate()
        judge.accumulate()
        judge.summarize()
    return judge


def nan_for_none(x: Any) -> Tensor:
    """pycocotools says −1 where there is nothing to judge."""
    values = np.asarray(x, dtype=np.float64)
    return torch.from_numpy(np.where(values == -1, np.nan, values))
