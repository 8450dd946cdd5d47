"""What a detector found, for people and for other programs.

.csv, .tsv, .jsonl    a row for each object
.json                 COCO results: image_id, category_id, bbox (x, y, width, height), score
a folder              YOLO: NAME.txt for each image, lines of class, centre x, centre y, width, height, score
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from descend.errors import Mistake
from descend.files import write_text
from descend.inference.answers import Answered
from descend.inference.detector import Detected
from descend.inference.saving import KINDS, check_out, write_answers
from descend.verbs.table import format_table


def check_detection_out(path: Path, replace: bool) -> None:
    """Refuse a name that cannot be written, before anything is computed."""
    if path.suffix:
        return check_out(path, replace, (*KINDS, ".json"))
    if path.is_file() or not path.parent.is_dir():
        raise Mistake(f"--out {path}: give a folder, or a file that ends in .json, {', '.join(KINDS)}")
    if path.is_dir() and any(path.iterdir()) and not replace:
        raise Mistake(f"--out {path} holds files; give --replace to write over them, or another name")


def write_detections(path: Path, found: Sequence[Answered], labels: Sequence[str]) -> None:
    """In the form that the name asks for."""
    answers = [answer for answer in found if isinstance(answer, Detected)]
    if path.suffix == ".json":
        write_text(path, json.dumps(list_results(answers, labels)))
    elif path.suffix:
        write_answers(path, found)
    else:
        path.mkdir(exist_ok=True)
        for answer in answers:
            write_text(path / f"{Path(answer.input).stem}.txt", format_yolo(answer, labels))


def list_results(answers: Sequence[Detected], labels: Sequence[str]) -> list[dict[str, Any]]:
    """COCO's results. An image whose name is a number has that id, as COCO's own files do; others are counted."""
    numbers = {name: k for k, name in enumerate(labels)}
    stems = [Path(answer.input).stem for answer in answers]
    counted = all(stem.isdecimal() for stem in stems) and len({int(stem) for stem in stems}) == len(stems)
    rows = []
    for place, (answer, stem) in enumerate(zip(answers, stems, strict=True), start=1):
        for o in answer.objects:
            x0, y0, x1, y1 = o.box
            image = {"image_id": int(stem) if counted else place, "file_name": answer.input}
            rows.append(
                {**image, "category_id": numbers[o.label] + 1, "bbox": [x0, y0, x1 - x0, y1 - y0], "score": o.score}
            )
    return rows


def format_yolo(answer: Detected, labels: Sequence[str]) -> str:
    """A line for each object, sizes as shares of the image."""
    numbers = {name: k for k, name in enumerate(labels)}
    height, width = answer.size
    lines = []
    for o in answer.objects:
        x0, y0, x1, y1 = o.box
        values = (x0 + x1) / 2 / width, (y0 + y1) / 2 / height, (x1 - x0) / width, (y1 - y0) / height, o.score
        lines.append(f"{numbers[o.label]} " + " ".join(f"{value:.6f}" for value in values) + "\n")
    return "".join(lines)


def show_objects(found: list[dict[str, Any]]) -> None:
    """Each image with a table of its objects."""
    for row in found:
        print(f"{row['input']}  {row['width']}×{row['height']}: {len(row['objects'])} objects")
        if row["objects"]:
            lines = [[o["label"], f"{o['score']:.3f}", *(f"{side:.0f}" for side in o["box"])] for o in row["objects"]]
            print(format_table(["object", "score", "left", "top", "right", "bottom"], lines))
