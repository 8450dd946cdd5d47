"""COCO's JSON: images, annotations, categories.

    annotation    bbox [x, y, w, h] in pixels, category_id, image_id, area, iscrowd, segmentation
    category      id and name; ids may begin at 1 and have gaps: they are kept and written back

A file is read member by member (`members.py`); outlines (segmentation) of one with more than `OUTLINED` bytes are left
out. Numbers are written with 6 decimals.

Systems: vision-datasets
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from descend import files
from descend.data.detection.annotated import AnnotatedSet, Notes, Rows, build_objects, list_images, name_below
from descend.data.detection.members import read_members
from descend.data.detection.objects import Objects
from descend.data.reading import show
from descend.errors import Mistake
from descend.ops.boxes import to_corner_size

OUTLINED = 2**26
DECIMALS = 6


@dataclass
class CocoFile:
    """One file, read and checked member by member."""

    path: Path
    part: str
    images: dict[int, dict[str, Any]] = field(default_factory=dict)
    categories: dict[int, str] = field(default_factory=dict)
    boxes: list[tuple[float, float, float, float]] = field(default_factory=list)
    facts: list[tuple[int, int, bool, float, int]] = field(default_factory=list)
    """image_id, category_id, iscrowd, area, place of each annotation."""
    outlines: list[Any] = field(default_factory=list)
    annotated: bool = False


def read_coco(found: list[tuple[str, Path]], root: Path) -> AnnotatedSet:
    """Files of annotations, each with the part that it is about."""
    parsed = [parse_coco(path, part, path.stat().st_size <= OUTLINED) for part, path in found]
    parsed = [file for file in parsed if file.annotated]
    if not parsed:
        raise Mistake(f"{show(found[0][1])} has no annotations; give a file with images, annotations and categories")
    numbers, labels = join_categories(parsed)
    notes, rows = Notes(), Rows()
    paths: list[Path] = []
    names: list[str] = []
    ids: list[int] = []
    owners: list[str] = []
    own: dict[int, dict[str, Any]] = {}
    parts: dict[str, list[int]] = {}
    for file in parsed:
        images = find_images(file, root)
        start = len(paths)
        notes.add("annotated images that are missing", (f"{f} of {show(file.path)}" for f, p in images if p is None))
        place = {}
        for (name, path), (number, entry) in zip(images, file.images.items(), strict=True):
            if path is not None:
                place[number] = len(paths)
                paths.append(path)
                names.append(name)
                ids.append(number)
                owners.append(show(name_below(file.path, root)))
                own[place[number]] = entry
        parts.setdefault(file.part, []).extend(range(start, len(paths)))
        add_annotations(file, place, numbers, rows, notes)
    listed = list_images(root, paths, names)
    unique = torch.tensor(ids) if len(set(ids)) == len(ids) else None
    objects, record = build_objects(listed, rows, unique)
    notes.add("sizes that are not the image's", compare_sizes(own, listed.sizes, names))
    split = {part: torch.tensor(which, dtype=torch.long) for part, which in parts.items()}
    return AnnotatedSet("coco", listed, objects, split, labels, numbers, owners, record, "annotation", notes)


def parse_coco(path: Path, part: str, outlined: bool) -> CocoFile:
    """The three lists of a file; what is not of the form is a mistake that names the entry."""
    file = CocoFile(path, part)
    for key, place, value in read_members(path):
        where = f"{show(path)}, {key}[{place}]"
        if key in ("images", "annotations", "categories"):
            file.annotated |= key == "annotations"
            if place < 0 or not isinstance(value, dict):
                raise Mistake(f"{where} is {type(value).__name__}, not an object; {key} is a list of objects")
        if key == "images":
            number = files.field(value, "id", int, where)
            name = files.field(value, "file_name", str, where)
            if not name or "\0" in name:
                raise Mistake(f"{where}: file_name is {name!r}; give the name of a file")
            if number in file.images:
                raise Mistake(
                    f"{where}: the id {number} is that of {file.images[number]['file_name']} too; give it once"
                )
            file.images[number] = {k: value.get(k) for k in ("file_name", "height", "width")}
        elif key == "categories":
            number = files.field(value, "id", int, where)
            if number in file.categories:
                raise Mistake(f"{where}: the id {number} is that of {file.categories[number]!r} too; give it once")
            file.categories[number] = files.field(value, "name", str, where)
        elif key == "annotations":
            add_annotation(file, value, where, place, outlined)
        elif key == "":
            raise Mistake(
                f"{show(path)} is a list, as results are; give a file with images, annotations and categories"
            )
    return file


def add_annotation(file: CocoFile, value: dict[str, Any], where: str, place: int, outlined: bool) -> None:
    image, category = (files.field(value, name, int, where) for name in ("image_id", "category_id"))
    x, y, w, h = read_bbox(value, where)
    area = files.field(value, "area", float, where) if value.get("area") is not None else -1.0
    crowd = value.get("iscrowd", 0)
    if crowd not in (0, 1):
        raise Mistake(f"{where}: iscrowd is {crowd!r}; give 0 or 1")
    file.boxes.append((x, y, x + w, y + h))
    file.facts.append((image, category, bool(crowd), float(area) if math.isfinite(area) else -1.0, place))
    file.outlines.append(read_outline(value.get("segmentation"), where) if outlined else None)


def read_outline(outline: Any, where: str) -> Any:
    """Polygons [[x, y, ..], ..], or run lengths {"size", "counts"}; None where there are none."""
    if not outline:
        return None
    if isinstance(outline, dict):
        counts = outline.get("counts")
        fits = isinstance(counts, str) or (isinstance(counts, list) and all(is_count(c) for c in counts))
    else:
        points = [v for p in outline for v in p] if is_lists(outline) else [None]
        fits = all(isinstance(v, int | float) and math.isfinite(v) and abs(v) < 2**31 for v in points)
    if not fits:
        raise Mistake(
            f"{where}: segmentation is neither polygons [[x, y, ..], ..] nor run lengths; correct or remove it"
        )
    return outline


def is_lists(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(inner, list) for inner in value)


def is_count(value: Any) -> bool:
    return isinstance(value, int) and 0 <= value < 2**31


def read_bbox(value: dict[str, Any], where: str) -> tuple[float, float, float, float]:
    """x, y, w, h."""
    box = files.items(value, "bbox", float, where)
    if len(box) != 4 or not all(math.isfinite(number) for number in box):
        raise Mistake(f"{where}: bbox is {box}; give four finite numbers x, y, width, height")
    x, y, w, h = map(float, box)
    return x, y, w, h


def join_categories(parsed: list[CocoFile]) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """The ids and names of the classes, the same in all files."""
    known: dict[int, str] = {}
    for file in parsed:
        for number, name in file.categories.items():
            if known.setdefault(number, name) != name:
                raise Mistake(
                    f"{show(file.path)}: category {number} is {name!r}, but {known[number]!r} in "
                    f"{show(parsed[0].path)}; give the same categories in all files"
                )
    if not known:
        raise Mistake(f"{show(parsed[0].path)} has no categories; list them: {{'id': 1, 'name': 'cat'}}, ..")
    numbers = tuple(sorted(known))
    return numbers, tuple(known[number] for number in numbers)


def add_annotations(file: CocoFile, place: dict[int, int], numbers: tuple[int, ...], rows: Rows, notes: Notes) -> None:
    """The objects of the images that are there."""
    index = {number: k for k, number in enumerate(numbers)}
    lost = []
    for box, (image, category, crowd, area, at), outline in zip(file.boxes, file.facts, file.outlines, strict=True):
        if category not in index:
            known = f"{numbers[0]} to {numbers[-1]}" if len(numbers) > 12 else ", ".join(map(str, numbers))
            raise Mistake(
                f"{show(file.path)}, annotations[{at}]: category_id {category} is none of the categories ({known}); "
                "correct it, or add the category"
            )
        if image in place:
            rows.add(place[image], box, index[category], at, crowd, area, outline)
        elif image not in file.images:
            lost.append(f"{show(file.path)}, annotations[{at}] (image_id {image})")
    notes.add("annotations of images that are not listed", lost)


def find_images(file: CocoFile, root: Path) -> list[tuple[str, Path | None]]:
    """Name and path of each image; None where it is missing. The folder is the first of the usual ones that has one."""
    if not file.images:
        raise Mistake(f"{show(file.path)} lists no images; give a file with images, annotations and categories")
    stem = file.path.stem
    for prefix in ("instances_", "person_keypoints_", "_annotations."):
        stem = stem.removeprefix(prefix)
    inner = (stem, file.part, "val" if file.part == "valid" else file.part, "")
    bases = [base / name for base in (root / "images", root) for name in inner]
    bases += [file.path.parent, file.path.parent / "images", file.path.parent.parent / "images", root / "JPEGImages"]
    names = [entry["file_name"] for entry in file.images.values()]
    for base in dict.fromkeys(bases):
        found = [base / name for name in names]
        there = [path if path.is_file() else None for path in found]
        if any(there):
            return [(name_below(path, base), p) for path, p in zip(found, there, strict=True)]
    looked = ", ".join(show(base) for base in dict.fromkeys(bases) if base.is_dir())
    raise Mistake(
        f"{show(file.path)}: none of its {len(names):,} images was found, e.g. {names[0]}; looked in {looked}; "
        "put the images into images/ beside it"
    )


def compare_sizes(own: dict[int, dict[str, Any]], sizes: Tensor, names: list[str]) -> Iterator[str]:
    """Where height and width of a file are not those of the image."""
    for i, entry in own.items():
        said, found = (entry["height"], entry["width"]), tuple(sizes[i].tolist())
        if None not in said and said != found:
            yield f"{names[i]}: {said[0]}×{said[1]} in the file, {found[0]}×{found[1]} in truth"


def write_coco(
    path: Path, objects: Objects, names: list[str], labels: tuple[str, ...], numbers: tuple[int, ...]
) -> None:
    """One file; `names` are the images' paths below their folder."""
    sizes, ids = objects.sizes.tolist(), objects.ids.tolist()
    images = [
        {"id": number, "file_name": name, "height": h, "width": w}
        for number, name, (h, w) in zip(ids, names, sizes, strict=True)
    ]
    numbers = numbers or tuple(range(1, len(labels) + 1))
    annotations = []
    boxes = to_corner_size(objects.boxes).tolist()
    for k, (box, owner, label) in enumerate(zip(boxes, objects.owner.tolist(), objects.classes.tolist(), strict=True)):
        entry = {
            "id": k + 1,
            "image_id": ids[owner],
            "category_id": numbers[label],
            "bbox": [round(v, DECIMALS) for v in box],
            "area": round(float(objects.area[k]), DECIMALS),
            "iscrowd": int(objects.crowd[k]),
        }
        if objects.outlines and objects.outlines[k] is not None:
            entry["segmentation"] = objects.outlines[k]
        annotations.append(entry)
    categories = [{"id": number, "name": name} for number, name in zip(numbers, labels, strict=True)]
    values = {"images": images, "annotations": annotations, "categories": categories}
    files.write_text(path, json.dumps(values, ensure_ascii=False) + "\n")
