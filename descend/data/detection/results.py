"""COCO's results, what a detector found: a list of objects with image_id, category_id, bbox [x, y, w, h] and score."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from descend import files
from descend.data.detection.coco import DECIMALS, read_bbox
from descend.data.detection.members import read_members
from descend.data.reading import show
from descend.errors import Mistake
from descend.ops.boxes import from_corner_size, to_corner_size


@dataclass(frozen=True)
class Results:
    """What was found, laid end to end: the image's id, box x0, y0, x1, y1 in its pixels, the category's id, score."""

    ids: Tensor
    boxes: Tensor
    categories: Tensor
    scores: Tensor


def read_results(path: str | Path) -> Results:
    """A file of results: a list of objects with image_id, category_id, bbox and score."""
    found = []
    for key, place, value in read_members(Path(path)):
        where = f"{show(path)}, entry {place}"
        if key or not isinstance(value, dict):
            raise Mistake(
                f"{where} is no result; results are a list of objects with image_id, category_id, bbox, score"
            )
        image, category = (files.field(value, name, int, where) for name in ("image_id", "category_id"))
        score = float(files.field(value, "score", float, where))
        if not math.isfinite(score):
            raise Mistake(f"{where}: score is {score}; give a finite number")
        found.append((image, category, score, *read_bbox(value, where)))
    table = torch.tensor(found, dtype=torch.float64).view(len(found), 7)
    return Results(
        torch.tensor([row[0] for row in found], dtype=torch.long),
        from_corner_size(table[:, 3:]),
        torch.tensor([row[1] for row in found], dtype=torch.long),
        table[:, 2],
    )


def write_results(path: str | Path, results: Results) -> None:
    """The file that COCO's evaluation reads."""
    rows = zip(
        results.ids.tolist(),
        results.categories.tolist(),
        to_corner_size(results.boxes.double()).tolist(),
        results.scores.tolist(),
        strict=True,
    )
    entries = [
        {"image_id": i, "category_id": c, "bbox": [round(v, DECIMALS) for v in box], "score": score}
        for i, c, box, score in rows
    ]
    files.write_text(Path(path), json.dumps(entries) + "\n")
