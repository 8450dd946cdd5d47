"""What a detector shows: COCO's table, every class, precision against recall, what is taken for what, its errors."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import torch
from torch import Tensor

from descend.contracts import Batch, Exhibit, Task
from descend.data.detection.framing import to_input
from descend.metrics.detection.coco import RECALLS, DetectionScores, judge_detections
from descend.metrics.detection.confusion import INVENTED, MISSED, count_confusions
from descend.metrics.detection.errors import NONE, DetectionError, find_errors
from descend.metrics.detection.evidence import DetectionEvidence
from descend.views.boxes import Colour, draw_objects, enlarge, to_image

SHOWN = 6  # images of each kind of error
SIDE = 316  # pixels that an image is shown with
SURE = 0.25  # score from which an object is drawn
TRUE, FOUND = (30, 170, 60), (220, 40, 40)
MEANING = {
    "confused": "Found at the right place, under another name",
    "loose": "Found, but with an IoU below 0.5",
    "repeated": "Found once more",
    "invented": "Nothing is there",
    "missed": "Nothing was found",
}


@torch.no_grad()
def show_detections(
    task: Task, batches: Iterable[Batch], restore: Callable[[Tensor], Tensor], labels: tuple[str, ...]
) -> list[Exhibit]:
    """All that the validation images tell."""
    evidence = look(task, batches)
    scores = judge_detections(evidence, len(labels))
    return [
        list_classes(scores, evidence, labels),
        draw_precision(scores, labels),
        *show_errors(evidence, batches, restore, labels),
    ]


def look(task: Task, batches: Iterable[Batch]) -> list[DetectionEvidence]:
    """What the model finds in every image."""
    where, training = next(task.parameters()).device, task.training
    task.eval()
    try:
        return [image for batch in batches for image in task.score(move(batch, where))["images"]]
    finally:
        task.train(training)


def move(batch: Batch, where: torch.device) -> Batch:
    return {name: x.to(where) for name, x in batch.items()}


def describe_set(evidence: list[DetectionEvidence]) -> str:
    objects = sum(len(image.true_boxes) for image in evidence)
    return f"{len(evidence):,} validation images with {objects:,} objects; small: below 32² pixels, large: above 96²."


def list_classes(scores: DetectionScores, evidence: list[DetectionEvidence], labels: tuple[str, ...]) -> Exhibit:
    """AP of every class, the lowest first."""
    counts = torch.cat([image.true_classes for image in evidence]).long().bincount(minlength=len(labels)).tolist()
    rows = [
        [name, float(scores.per_class[k]), float(scores.per_class50[k]), counts[k]]
        for k, name in enumerate(labels)
        if counts[k]
    ]
    rows.sort(key=lambda row: row[1])
    content = {"columns": ["class", "AP", "AP50", "objects"], "rows": rows}
    return Exhibit("table", "Average precision by class", content, describe_set(evidence))


def draw_precision(scores: DetectionScores, labels: tuple[str, ...]) -> Exhibit:
    """Precision against recall at IoU 0.5, of every class; of many classes the five lowest and the five highest."""
    there = [k for k in range(len(labels)) if scores.per_class[k] == scores.per_class[k]]
    there.sort(key=lambda k: float(scores.per_class50[k]))
    chosen = there if len(there) <= 10 else [*there[:5], *there[-5:]]
    lines = {labels[k]: scores.precision[0, :, k, 0].tolist() for k in chosen}
    content = {"x": RECALLS.tolist(), "y": lines, "x_label": "recall", "y_label": "precision"}
    return Exhibit(
        "curve", "Precision and recall at IoU 0.5", content, "Validation images, the envelope of 101 points."
    )


def show_errors(
    evidence: list[DetectionEvidence],
    batches: Iterable[Batch],
    restore: Callable[[Tensor], Tensor],
    labels: tuple[str, ...],
) -> list[Exhibit]:
    """What is taken for what, and images with each kind of error, the worst first."""
    counts = count_confusions(evidence, len(labels), SURE)
    content = {"labels": [*labels, INVENTED], "columns": [*labels, MISSED], "counts": counts.tolist()}
    note = f"Objects found with a score of at least {SURE}, at an IoU of 0.5."
    errors = find_errors(evidence, len(labels), SURE)
    chosen = {kind: first_images(found) for kind, found in errors.items()}
    drawn = pick(batches, {error.image for found in chosen.values() for error in found})
    exhibits = [Exhibit("confusion", "Confusion matrix", content, note)]
    for kind, found in chosen.items():
        pictures = [draw_image(*drawn[error.image], evidence[error.image], restore, labels) for error in found]
        if pictures:
            captions = [describe_error(error, evidence[error.image], labels) for error in found]
            shown = {"images": same_size(pictures), "captions": captions, "side": SIDE}
            title = f"{kind.capitalize()} objects: {len(errors[kind]):,}"
            exhibits.append(Exhibit("images", title, shown, f"{MEANING[kind]}; true in green, found in red."))
    return exhibits


def first_images(found: list[DetectionError]) -> list[DetectionError]:
    """The worst error of each image, of the first few images."""
    return list({error.image: error for error in reversed(found)}.values())[::-1][:SHOWN]


def describe_error(error: DetectionError, image: DetectionEvidence, labels: tuple[str, ...]) -> str:
    """star called triangle, score 0.87, IoU 0.74"""
    true = labels[int(image.true_classes[error.truth])] if error.truth != NONE else ""
    if error.found == NONE:
        return true
    name = labels[int(image.classes[error.found])]
    said = f"{true} called {name}" if true and true != name else name
    return f"{said}, score {error.score:.2f}" + (f", IoU {error.iou:.2f}" if true else "")


def pick(batches: Iterable[Batch], wanted: set[int]) -> dict[int, tuple[Tensor, Tensor]]:
    """The inputs of these images and the way their boxes took, by number."""
    found: dict[int, tuple[Tensor, Tensor]] = {}
    start = 0
    for batch in batches:
        here = range(start, start := start + len(batch["x"]))
        found |= {i: (batch["x"][i - here.start], batch["back"][i - here.start]) for i in here if i in wanted}
        if len(found) == len(wanted):
            break
    return found


def draw_image(
    x: Tensor,
    back: Tensor,
    image: DetectionEvidence,
    restore: Callable[[Tensor], Tensor],
    labels: tuple[str, ...],
) -> np.ndarray:
    """An input with its true objects and those found."""
    pixels, times = enlarge(to_image(restore(x[None])[0]), SIDE)
    sure = image.scores >= SURE
    boxes = times * to_input(torch.cat([image.true_boxes.double(), image.boxes[sure].double()]), back.double())
    tags = [labels[k] for k in image.true_classes.long().tolist()]
    colours: list[Colour] = [TRUE] * len(tags)
    told = zip(image.classes[sure].long().tolist(), image.scores[sure].tolist(), strict=True)
    tags += [f"{labels[k]} {score:.2f}" for k, score in told]
    return draw_objects(pixels, boxes, tags, [*colours, *[FOUND] * (len(tags) - len(colours))])


def same_size(pictures: list[np.ndarray]) -> np.ndarray:
    """Images on grounds as large as the largest (n, h, w, 3) of 0..1."""
    height, width = (max(p.shape[axis] for p in pictures) for axis in (0, 1))
    sheet = np.ones((len(pictures), height, width, 3))
    for ground, picture in zip(sheet, pictures, strict=True):
        ground[: picture.shape[0], : picture.shape[1]] = picture / 255
    return sheet
