"""Small sets of annotated images in the three forms, for tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

SIZES = {"a": (40, 60), "b": (50, 30), "c": (32, 32), "d": (24, 48), "e": (30, 30), "f": (28, 44)}
BOXES = {
    "a": [(1, (5.0, 4.0, 25.0, 30.0)), (3, (30.5, 10.25, 58.0, 39.75))],
    "b": [(1, (2.0, 3.0, 28.0, 47.0))],
    "c": [],
    "d": [(7, (1.0, 1.0, 20.0, 20.0)), (7, (22.0, 2.0, 40.0, 22.0)), (3, (5.0, 5.0, 12.0, 15.0))],
    "e": [(3, (3.0, 3.0, 27.0, 27.0))],
    "f": [(1, (10.0, 4.0, 40.0, 24.0))],
}
NAMES = {1: "cat", 3: "dog", 7: "red fox"}
PARTS = {"train": ["a", "b", "c", "d"], "val": ["e"], "test": ["f"]}


def write_image(path: Path, size: tuple[int, int], seed: int = 0, exif: int = 1) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng([seed, *size]).integers(0, 256, (*size, 3), np.uint8)
    image = Image.fromarray(pixels)
    note = Image.Exif()
    note[0x0112] = exif
    image.save(path, quality=90, exif=note)


def coco(root: Path) -> Path:
    """annotations/instances_PART.json and images/PART; class numbers with gaps; one crowd, one polygon."""
    for part, stems in PARTS.items():
        images, annotations = [], []
        for stem in stems:
            h, w = SIZES[stem]
            number = 100 + ord(stem)
            write_image(root / "images" / part / f"{stem}.jpg", (h, w))
            images.append({"id": number, "file_name": f"{stem}.jpg", "height": h, "width": w})
            for label, (x0, y0, x1, y1) in BOXES[stem]:
                entry: dict[str, Any] = {"id": len(annotations) + 1, "image_id": number, "category_id": label}
                entry |= {"bbox": [x0, y0, x1 - x0, y1 - y0], "area": (x1 - x0) * (y1 - y0), "iscrowd": 0}
                annotations.append(entry)
        if part == "train":
            annotations[0]["segmentation"] = [[5.0, 4.0, 25.0, 4.0, 25.0, 30.0]]
            annotations[0]["area"] = 260.0
            annotations[3]["iscrowd"] = 1
            annotations.reverse()
        categories = [{"id": number, "name": name} for number, name in NAMES.items()]
        values = {"info": {}, "images": images, "annotations": annotations, "categories": categories}
        path = root / "annotations" / f"instances_{part}.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(values))
    return root


def yolo(root: Path, names: str = "names: [cat, dog, red fox]") -> Path:
    """data.yaml, images/PART, labels/PART."""
    index = {number: k for k, number in enumerate(NAMES)}
    for part, stems in PARTS.items():
        for stem in stems:
            h, w = SIZES[stem]
            write_image(root / "images" / part / f"{stem}.jpg", (h, w))
            lines = [
                f"{index[k]} {(x0 + x1) / 2 / w} {(y0 + y1) / 2 / h} {(x1 - x0) / w} {(y1 - y0) / h}"
                for k, (x0, y0, x1, y1) in BOXES[stem]
            ]
            label = root / "labels" / part / f"{stem}.txt"
            label.parent.mkdir(parents=True, exist_ok=True)
            label.write_text("\n".join(lines))
    (root / "data.yaml").write_text(f"path: .\ntrain: images/train\nval: images/val\ntest: images/test\n{names}\n")
    return root


def voc(root: Path) -> Path:
    """Annotations, JPEGImages, ImageSets/Main."""
    for part, stems in PARTS.items():
        for stem in stems:
            h, w = SIZES[stem]
            write_image(root / "JPEGImages" / f"{stem}.jpg", (h, w))
            write_xml(root / "Annotations" / f"{stem}.xml", (h, w), [(NAMES[k], box) for k, box in BOXES[stem]])
        lists = root / "ImageSets" / "Main"
        lists.mkdir(parents=True, exist_ok=True)
        (lists / f"{part}.txt").write_text("".join(f"{stem}\n" for stem in stems))
    return root


def write_xml(path: Path, size: tuple[int, int], objects: list[tuple[str, tuple[float, ...]]], extra: str = "") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    body = "".join(
        f"<object><name>{name}</name><difficult>0</difficult><bndbox><xmin>{x0}</xmin><ymin>{y0}</ymin>"
        f"<xmax>{x1}</xmax><ymax>{y1}</ymax></bndbox></object>"
        for name, (x0, y0, x1, y1) in objects
    )
    head = f"<annotation><size><width>{size[1]}</width><height>{size[0]}</height><depth>3</depth></size>"
    path.write_text(f"{head}{body}{extra}</annotation>")
