"""COCO's scores of 5,000 images beside pycocotools: 80 classes, 7 objects and 40 found boxes an image.

Both begin with what a detector gave: ours with tensors of each image, pycocotools with its lists of results and a truth
that is already indexed. Loading the truth is not timed.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from typing import Any

import torch

from benchmarks.turns import take_turns
from descend.metrics.detection.evidence import DetectionEvidence

IMAGES, CLASSES, OBJECTS, FOUND = 5000, 80, 7, 40


def make_set() -> list[DetectionEvidence]:
    """Three noisy boxes around every object, the rest anywhere."""
    random = torch.Generator().manual_seed(0)
    low = torch.rand(IMAGES, OBJECTS, 2, generator=random, dtype=torch.float64) * 500
    side = 2 ** (3 + 5 * torch.rand(IMAGES, OBJECTS, 2, generator=random, dtype=torch.float64))
    truth = torch.cat([low, low + side], dim=-1)
    kinds = torch.randint(0, CLASSES, (IMAGES, OBJECTS), generator=random)
    near = truth.repeat(1, 3, 1)
    near = near + 0.1 * torch.randn(near.shape, generator=random, dtype=torch.float64) * side.repeat(1, 3, 2)
    rest = FOUND - near.shape[1]
    low = torch.rand(IMAGES, rest, 2, generator=random, dtype=torch.float64) * 500
    far = torch.cat([low, low + 1 + 100 * torch.rand(IMAGES, rest, 2, generator=random, dtype=torch.float64)], dim=-1)
    found = torch.cat([near, far], dim=1)
    named = torch.cat([kinds.repeat(1, 3), torch.randint(0, CLASSES, (IMAGES, rest), generator=random)], dim=1)
    scores = torch.rand(IMAGES, FOUND, generator=random, dtype=torch.float64)
    crowd, areas = torch.rand(IMAGES, OBJECTS, generator=random) < 0.02, side.prod(dim=-1)
    return [DetectionEvidence(*row) for row in zip(found, named, scores, truth, kinds, crowd, areas, strict=True)]


def ours() -> Callable[[], object]:
    from descend.metrics.detection.coco import judge_detections

    torch.set_num_threads(1)
    evidence = make_set()
    return lambda: judge_detections(evidence, CLASSES)


def without_compiler() -> Callable[[], object]:
    from descend.metrics.detection import matching

    matching.match_found = lambda *_: None  # type: ignore[assignment]
    return ours()


def pycocotools() -> Callable[[], object]:
    from pycocotools.coco import COCO  # type: ignore[import-untyped]
    from pycocotools.cocoeval import COCOeval  # type: ignore[import-untyped]

    annotations: list[dict[str, Any]] = []
    results: list[dict[str, Any]] = []
    sized = lambda box: [box[0], box[1], box[2] - box[0], box[3] - box[1]]
    for image, e in enumerate(make_set()):
        boxes, kinds, scores, truth, true_kinds, crowd, areas = (x.tolist() for x in e)
        for box, kind, flag, size in zip(truth, true_kinds, crowd, areas, strict=True):
            annotations.append({
                "id": len(annotations) + 1, "image_id": image, "category_id": kind, "bbox": sized(box),
                "iscrowd": int(flag), "area": size,
            })  # fmt: skip
        for box, kind, score in zip(boxes, kinds, scores, strict=True):
            results.append({"image_id": image, "category_id": kind, "bbox": sized(box), "score": score})
    ids = {"images": [{"id": k} for k in range(IMAGES)], "categories": [{"id": k} for k in range(CLASSES)]}
    with contextlib.redirect_stdout(io.StringIO()):
        coco = COCO()
        coco.dataset = {**ids, "annotations": annotations, "info": {}}
        coco.createIndex()

    def run() -> object:
        with contextlib.redirect_stdout(io.StringIO()):
            judge = COCOeval(coco, coco.loadRes([dict(row) for row in results]), "bbox")
            judge.evaluate()
            judge.accumulate()
            judge.summarize()
        return judge.stats

    return run


def measure(rounds: int = 2, calls: int = 1) -> list[dict[str, object]]:
    """Images a second of both."""
    names = ("ours", "without_compiler", "pycocotools")
    times, memory = take_turns({name: f"benchmarks.detection_scores:{name}" for name in names}, rounds, calls)
    best = {name: min(values) for name, values in times.items()}
    rows = []
    for name, form in (("ours", "compiled"), ("without_compiler", "without a compiler")):
        rows.append({
            "name": f"COCO scores of {IMAGES:,} images, {form}", "ours": IMAGES / best[name],
            "theirs": IMAGES / best["pycocotools"], "unit": "images/s", "ratio": best["pycocotools"] / best[name],
            "bar": 1.0,
            "note": f"{best[name]:.2f} s against {best['pycocotools']:.2f} of pycocotools; {CLASSES} classes, "
            f"{FOUND} found boxes an image; peak memory {memory[name] / 1e6:.0f} MB against "
            f"{memory['pycocotools'] / 1e6:.0f}",
        })  # fmt: skip
    return rows


if __name__ == "__main__":
    for row in measure():
        print(row)
