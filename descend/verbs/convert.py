"""descend convert: a set of annotated images from COCO's, YOLO's or VOC's form into another."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any, Literal

from descend.data.detection.formats import FORMS, read_annotated, write_annotated
from descend.errors import Mistake


def convert(source: str | Path, target: str | Path, to: str, link: bool = False) -> dict[str, Any]:
    """Write a set in another form, and say what it holds. The folder is there whole, or not at all.

    Args:
        source: a folder in the form of COCO, YOLO or VOC, a data.yaml, or a COCO .json.
        target: the folder to write; it must not exist, or be empty.
        to: coco, yolo or voc.
        link: link the images instead of copying them.
    """
    folder = Path(target)
    if to not in FORMS:
        raise Mistake(f"--to {to}: choose {', '.join(FORMS)}")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise Mistake(f"{folder} exists and is not empty; give the name of a new folder")
    found = read_annotated(source)
    aside = folder.with_name(f".{folder.name}.{os.getpid()}")
    try:
        aside.mkdir(parents=True)
        write_annotated(found, aside, to, link)
        if folder.exists():
            folder.rmdir()
        os.replace(aside, folder)
    except BaseException:
        shutil.rmtree(aside, ignore_errors=True)
        raise
    objects, lost = found.objects, {}
    crowds, shaped = int(objects.crowd.sum()), sum(outline is not None for outline in objects.outlines)
    if to == "yolo" and crowds:
        lost["crowds, which YOLO's files cannot hold"] = crowds
    if to in ("yolo", "voc") and shaped:
        lost["outlines: the boxes are written"] = shaped
    facts = {"from": found.form, "images": len(objects), "objects": len(objects.classes), "classes": len(found.labels)}
    parts = {part: len(rows) for part, rows in found.parts.items()}
    return {**facts, "parts": parts, "left out": lost, "notes": found.notes.facts()}


def command(source: str, target: str, /, *, to: Literal["coco", "yolo", "voc"], link: bool = False) -> None:
    """Convert a set of annotated images between the forms of COCO, YOLO and VOC.

    Boxes, classes, class numbers, crowds and parts stay as they are, as far as the form can hold them; boxes that are
    odd stay odd (`descend plan` names them).

    Args:
        source: a folder in the form of COCO, YOLO or VOC, a data.yaml, or a COCO .json.
        target: the folder to write; it must not exist, or be empty.
        to: the form to write.
        link: link the images instead of copying them.

    Examples:
        descend convert VOCdevkit/VOC2007 voc-as-yolo --to yolo
        descend convert coco/ here --to voc --link
    """
    found = convert(source, target, to, link)
    parts = ", ".join(f"{name} {count:,}" for name, count in found["parts"].items())
    print(f"{found['images']:,} images ({parts}) with {found['objects']:,} objects of {found['classes']:,} classes")
    for what, count in {**found["left out"]}.items():
        print(f"left out: {count:,} {what}")
    for kind, where in found["notes"].items():
        print(f"{kind}: {where}")
    print(f"{found['from']} -> {to}: {target}")
