"""Which form a folder has, and reading and writing any of them.

COCO     annotations/*.json, *.json, or PART/*.json             a .json file may be given itself
YOLO     a .yaml file with train: and names:, or images/ and labels/        so may a .yaml file
VOC      Annotations/*.xml, or .xml files beside the images

written  COCO   annotations/PART.json, images/PART/..
         YOLO   data.yaml, images/PART/.., labels/PART/..
         VOC    Annotations/.., JPEGImages/.., ImageSets/Main/PART.txt, classes.txt
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from descend.data.detection.annotated import AnnotatedSet
from descend.data.detection.coco import read_coco, write_coco
from descend.data.detection.voc import CLASSES, PARTS, read_voc, write_voc
from descend.data.detection.yolo import parse_yaml, read_yolo, write_yaml, write_yolo
from descend.data.reading import check_file, is_folder, list_entries, show
from descend.errors import Mistake
from descend.files import write_text

FORMS = ("coco", "yolo", "voc")
YAML = (".yaml", ".yml")


def read_annotated(path: str | Path) -> AnnotatedSet:
    """A folder of annotated images, or the file that describes it."""
    place = Path(path)
    if not is_folder(place):
        check_file(place)
        if place.suffix.lower() in YAML:
            return read_yolo(place)
        if place.suffix.lower() == ".json":
            root = place.parent.parent if place.parent.name == "annotations" else place.parent
            return read_coco([("train", place)], root)
        raise Mistake(f"{show(place)} is one file; give the folder of the set, a data.yaml, or a COCO .json")
    described = next(find_yaml(place), None)
    if described is not None:
        return read_yolo(described)
    if jsons := list(find_jsons([place / "annotations"])):
        return read_coco(jsons, place)
    if (place / "Annotations").is_dir():
        return read_voc(place)
    if (place / "images").is_dir() and (place / "labels").is_dir():
        return read_yolo(place)
    if jsons := list(find_jsons([place])) or list(find_jsons([place / name for name in PARTS])):
        return read_coco(jsons, place)
    if next(find_xml(place), None) is not None:
        return read_voc(place)
    raise Mistake(
        f"{show(place)} holds no annotated images: looked for a .yaml file with names: (YOLO), annotations/*.json or "
        "*.json (COCO), Annotations/*.xml (VOC), and folders images/ and labels/"
    )


def find_yaml(root: Path) -> Iterator[Path]:
    """Files that describe a set as YOLO's do; data.yaml first."""
    found = [path for path in list_entries(root) if path.suffix.lower() in YAML and path.is_file()]
    for path in sorted(found, key=lambda path: path.stem != "data"):
        if path.stem == "data" or "names" in parse_yaml(path):
            yield path


def find_jsons(folders: list[Path]) -> Iterator[tuple[str, Path]]:
    """Files of annotations, each with its part: by the word train, val or test in its name, or its folder's."""
    for folder in folders:
        if not folder.is_dir():
            continue
        found = [p for p in list_entries(folder) if p.suffix.lower() == ".json" and p.is_file()]
        found = [path for path in found if not path.name.startswith((".", "captions_", "stuff_", "panoptic_"))]
        for path in [path for path in found if path.name.startswith("instances_")] or found:
            yield find_part(folder if folder.name in PARTS else path), path


def find_part(path: Path) -> str:
    """train, valid or test, by a name; train where it says nothing."""
    name = path.stem.lower()
    return next((part for key, part in PARTS.items() if key in name), "train")


def find_xml(root: Path) -> Iterator[Path]:
    folders = [root, *(root / name for name in PARTS)]
    for folder in folders:
        if folder.is_dir():
            yield from (path for path in list_entries(folder) if path.suffix.lower() == ".xml")


def write_annotated(found: AnnotatedSet, folder: Path, form: str, link: bool = False) -> None:
    """The set in another form, images copied (or linked); `folder` must be new or empty."""
    if form not in FORMS:
        raise Mistake(f"--to {form}: choose {', '.join(FORMS)}")
    images = {"coco": "images", "yolo": "images", "voc": "JPEGImages"}[form]
    names = name_uniquely(found, form)
    for part, rows in found.parts.items():
        own = [names[i] for i in rows.tolist()]
        objects = found.objects.take(rows)
        inner = folder / images / part if form != "voc" else folder / images
        for i, name in zip(rows.tolist(), own, strict=True):
            copy_image(found.listed.paths[i], inner / name, link)
        if form == "coco":
            (folder / "annotations").mkdir(exist_ok=True)
            write_coco(folder / "annotations" / f"{part}.json", objects, own, found.labels, found.numbers)
        elif form == "yolo":
            write_yolo(folder / "labels" / part, objects, own, found.numbers)
        else:
            write_voc(folder / "Annotations", objects, own, found.labels)
            lists = folder / "ImageSets" / "Main"
            lists.mkdir(parents=True, exist_ok=True)
            key = "val" if part == "valid" else part
            write_text(lists / f"{key}.txt", "".join(f"{show(Path(name).with_suffix(''))}\n" for name in own))
    if form == "yolo":
        write_yaml(folder / "data.yaml", list(found.parts), found.labels, found.numbers)
    elif form == "voc":
        lines = (f"{number}\t{name}\n" for number, name in zip(found.numbers, found.labels, strict=True))
        write_text(folder / CLASSES, "".join(lines))


def name_uniquely(found: AnnotatedSet, form: str) -> list[str]:
    """The images' names: without the folder of their part; of two that differ only in their ending, or lie in two parts
    that VOC puts together, the later has its number in front."""
    names = [""] * len(found.objects)
    seen: set[str] = set()
    for part, rows in found.parts.items():
        for i in rows.tolist():
            path = Path(found.listed.names[i])
            if len(path.parts) > 1 and PARTS.get(path.parts[0].lower()) == part:
                path = Path(*path.parts[1:])
            if path.is_absolute() or ".." in path.parts:
                path = Path(path.name)
            key = f"{'' if form == 'voc' else part}/{path.with_suffix('')}"
            if key in seen:
                path = path.with_name(f"{i}-{path.name}")
                key = f"{'' if form == 'voc' else part}/{path.with_suffix('')}"
            seen.add(key)
            names[i] = str(path)
    return names


def copy_image(source: Path, target: Path, link: bool) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if link:
        os.symlink(os.path.abspath(source), target)
    else:
        shutil.copyfile(source, target)
