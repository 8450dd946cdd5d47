"""YOLO's text files: a line for each object, beside the images, and data.yaml that names parts and classes.

    images/train/a.jpg  ->  labels/train/a.txt            the last folder `images` of the path becomes `labels`
    class cx cy w h                                       shares of the image's width and height, 0..1
    class x1 y1 x2 y2 x3 y3 ..                            a polygon: its extent is the box

    data.yaml    path: (relative to the file), train:, val:, test: (a folder, a list of images in a .txt, or several)
                 names: a list, or {number: name}, whose numbers may have gaps: they are kept and written back

An image without a file, or with an empty one, has no objects.

Systems: vision-datasets
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from descend import files
from descend.data.detection.annotated import AnnotatedSet, Notes, Rows, build_objects, list_images, name_below
from descend.data.detection.objects import Objects
from descend.data.images.files import list_image_files
from descend.data.reading import check_file, is_folder, read_text, show
from descend.errors import Mistake
from descend.ops.boxes import to_centre

MOST_YAML = 2**22
KEYS = {"train": "train", "val": "valid", "valid": "valid", "test": "test"}
PIXELS = 2.0  # a number above this is no share, but pixels
ENDING = ".txt"


def read_yolo(path: Path) -> AnnotatedSet:
    """A data.yaml, or a folder with images/ and labels/."""
    root, parts, names, given = read_yaml(path) if path.is_file() else list_plain(path)
    paths = [image for images in parts.values() for image in images]
    if not paths:
        raise Mistake(f"{show(path)}: its folders hold no images; put them there, or correct the paths")
    listed = list_images(root, paths, [name_image(image, root) for image in paths])
    labels = [find_label(image) for image in paths]
    there = [label.is_file() for label in labels]
    if not any(there):
        looked = show(labels[0].parent)
        raise Mistake(
            f"0 of {len(paths):,} images have labels; looked in {looked} for {labels[0].name}; "
            "put the .txt files there, or give the folder of the set with images/ and labels/"
        )
    notes, rows = Notes(), Rows()
    notes.add("images without a label file, taken as empty", (listed.names[i] for i, t in enumerate(there) if not t))
    for i, label in enumerate(labels):
        if there[i]:
            read_label(label, i, tuple(listed.sizes[i].tolist()), rows, notes)
    notes.add("label files without an image, left out", find_lonely(labels, root))
    numbers, words = name_classes(rows, names, labels)
    index = {number: k for k, number in enumerate(numbers)}
    rows.label = [index[number] for number in rows.label]
    objects, record = build_objects(listed, rows)
    split, start = {}, 0
    for part, images in parts.items():
        split[part] = torch.arange(start, start + len(images))
        start += len(images)
    shown = [name_below(label, root) for label in labels]
    numbers = given if len(given) == len(numbers) else numbers
    return AnnotatedSet("yolo", listed, objects, split, words, numbers, shown, record, "line", notes)


Found = tuple[Path, dict[str, list[Path]], dict[int, str], tuple[int, ...]]
"""The folder, the images of each part, the names of the classes, and what numbers they had in other files."""


def read_yaml(path: Path) -> Found:
    """What a data.yaml says."""
    values = parse_yaml(path)
    base = path.parent / str(values.get("path") or "")
    if not is_folder(base):
        base = path.parent  # the path of another machine
    parts: dict[str, list[Path]] = {}
    for key, part in KEYS.items():
        entries = values.get(key)
        for entry in entries if isinstance(entries, list) else [] if entries is None else [entries]:
            if not isinstance(entry, str):
                raise Mistake(f"{show(path)}: {key} is {entry!r}; give a folder, or a .txt file that lists images")
            parts.setdefault(part, []).extend(find_part(path, key, base, entry))
    if "train" not in parts:
        raise Mistake(f"{show(path)} has no train; give the folder of the training images: train: images/train")
    numbers = values.get("numbers")
    whole = isinstance(numbers, list) and all(type(number) is int for number in numbers)
    return base, parts, read_names(values, path), tuple(numbers or ()) if whole else ()


def parse_yaml(path: Path) -> dict[str, Any]:
    import yaml

    text = files.read_text(path, MOST_YAML)
    try:
        values = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        said = " ".join(str(error).split())
        raise Mistake(f"{show(path)} is not valid YAML ({said[:200]}); correct it") from None
    if not isinstance(values, dict):
        raise Mistake(f"{show(path)} is no table of names; a data.yaml has train:, val: and names:")
    return values


def read_names(values: dict[str, Any], path: Path) -> dict[int, str]:
    """Number -> name."""
    names, count = values.get("names"), values.get("nc")
    if isinstance(names, list):
        names = dict(enumerate(names))
    if not isinstance(names, dict) or not names:
        raise Mistake(f"{show(path)} has no names; list the classes: names: [cat, dog]")
    found = {}
    for number, name in names.items():
        if isinstance(number, str) and number.isdecimal() and len(number) < 9:
            number = int(number)
        if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < 10**9:
            raise Mistake(f"{show(path)}: names has the number {number!r}; numbers are 0, 1, 2, ..")
        found[number] = str(name)
    if isinstance(count, int) and count != len(found) and isinstance(values["names"], list):
        raise Mistake(f"{show(path)}: nc is {count}, but names lists {len(found)}; correct one of them")
    return dict(sorted(found.items()))


def find_part(path: Path, key: str, base: Path, entry: str) -> list[Path]:
    """The images of an entry of data.yaml."""
    if "\0" in entry:
        raise Mistake(f"{show(path)}: {key} holds a null character; give a folder")
    tried = [base / entry, path.parent / entry]
    if entry.startswith("../"):  # as some exports write what lies beside the file
        tried += [base / entry.removeprefix("../"), path.parent / entry.removeprefix("../")]
    for place in dict.fromkeys(tried):
        if place.is_dir():
            return list_image_files(place)[0]
        if place.is_file() and place.suffix == ENDING:
            lines = [line.strip() for line in read_text(place).split("\n")]
            found = [place.parent / line if line.startswith("./") else base / line for line in lines if line]
            for number, image in enumerate(found, start=1):
                try:
                    check_file(image)
                except Mistake as mistake:
                    raise Mistake(f"{show(place)}, line {number}: {mistake}; correct the list") from None
            return found
    places = " and ".join(show(place) for place in dict.fromkeys(tried))
    raise Mistake(f"{show(path)}: {key}: {entry} was not found; looked at {places}; correct the path")


def list_plain(root: Path) -> Found:
    """A folder without data.yaml: images/ (perhaps with train, val, test inside), labels/, perhaps classes.txt."""
    images = root / "images"
    parts = {}
    for key, part in KEYS.items():
        if (images / key).is_dir():
            parts[part] = list_image_files(images / key)[0]
    if "train" not in parts:
        parts = {"train": list_image_files(images)[0]}
    classes = root / "classes.txt"
    names = [line.strip() for line in read_text(classes).split("\n") if line.strip()] if classes.is_file() else []
    return root, parts, dict(enumerate(names)), ()


def name_image(image: Path, root: Path) -> str:
    """A file by its path below the last folder `images`, or below the root."""
    parts = image.parts
    if "images" in parts[:-1]:
        at = len(parts) - 1 - parts[::-1].index("images")
        return show(Path(*parts[at + 1 :]))
    return name_below(image, root)


def find_label(image: Path) -> Path:
    """The file that labels an image: in `labels` instead of the last `images` of its path, or beside it."""
    parts = list(image.parts)
    if "images" in parts[:-1]:
        at = len(parts) - 1 - parts[::-1].index("images")
        parts[at] = "labels"
    return Path(*parts).with_suffix(ENDING)


def find_lonely(labels: list[Path], root: Path) -> Iterator[str]:
    """Files in the folders of labels that belong to no image."""
    known = set(labels)
    for folder in sorted({label.parent for label in labels if "labels" in label.parts and label.parent.is_dir()}):
        for file in sorted(folder.glob(f"*{ENDING}")):
            if file not in known and file.stem != "classes":
                yield name_below(file, root)


def read_label(path: Path, image: int, size: tuple[int, ...], rows: Rows, notes: Notes) -> None:
    """The lines of a file, in pixels of an image of this height and width."""
    height, width = size
    polygons = []
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        words = line.split()
        if not words:
            continue
        where = f"{show(path)}, line {number}"
        label, values = parse_line(words, where)
        if len(values) == 4:
            cx, cy, w, h = values
            box = (cx - w / 2) * width, (cy - h / 2) * height, (cx + w / 2) * width, (cy + h / 2) * height
            rows.add(image, box, label, number)
        else:
            x, y = [v * width for v in values[::2]], [v * height for v in values[1::2]]
            outline = [[v for point in zip(x, y, strict=True) for v in point]]
            rows.add(image, (min(x), min(y), max(x), max(y)), label, number, area=measure(x, y), outline=outline)
            polygons.append(where)
    notes.add("polygons that became boxes", polygons)


def parse_line(words: list[str], where: str) -> tuple[int, list[float]]:
    """The class, and four numbers or those of a polygon."""
    try:
        numbers = [float(word) for word in words]
    except ValueError as error:
        raise Mistake(f"{where}: {error}; a line is: class cx cy w h") from None
    label, values = numbers[0], numbers[1:]
    if not all(map(math.isfinite, numbers)) or label != int(label) or not 0 <= label < 10**9:
        raise Mistake(
            f"{where}: the class is {words[0]}; classes are whole numbers 0, 1, 2, .., and all numbers finite"
        )
    if len(values) != 4 and (len(values) < 6 or len(values) % 2):
        raise Mistake(f"{where}: {len(words)} numbers; a line is: class cx cy w h, or: class x1 y1 x2 y2 x3 y3 ..")
    if max(map(abs, values)) > PIXELS:
        raise Mistake(
            f"{where}: {max(values, key=abs):.6g} is no share of the image; YOLO's numbers are 0 to 1: divide x and w "
            "by the image's width, y and h by its height"
        )
    return int(label), values


def measure(x: list[float], y: list[float]) -> float:
    """The area of a polygon: ½ |Σ x_i y_{i+1} − x_{i+1} y_i|"""
    pairs = zip(x, y, x[1:] + x[:1], y[1:] + y[:1], strict=True)
    return abs(sum(a * d - c * b for a, b, c, d in pairs)) / 2


def name_classes(rows: Rows, names: dict[int, str], labels: list[Path]) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """The numbers and names of the classes; without names, the numbers that are used."""
    used = sorted(set(rows.label))
    if not names:
        return tuple(used) or (0,), tuple(map(str, used)) or ("0",)
    for number in used:
        if number not in names:
            k = rows.label.index(number)
            where = f"{show(labels[rows.image[k]])}, line {rows.record[k]}"
            known = f"0 to {max(names)}" if len(names) == max(names) + 1 else ", ".join(map(str, names))
            raise Mistake(f"{where}: class {number}, but the names are those of {known}; correct it, or add a name")
    return tuple(names), tuple(names.values())


def number_classes(numbers: tuple[int, ...]) -> tuple[int, ...]:
    """The numbers that YOLO's files may have: their own if they begin at 0, else 0, 1, 2, .."""
    return numbers if numbers and numbers[0] == 0 else tuple(range(len(numbers)))


def write_yolo(folder: Path, objects: Objects, names: list[str], numbers: tuple[int, ...]) -> None:
    """A text file for each image, in `folder`; crowds are not written."""
    size = objects.sizes.flip(1).repeat(1, 2)[objects.owner].double()
    boxes = (to_centre(objects.boxes) / size).tolist()
    written = number_classes(numbers)
    lines: list[list[str]] = [[] for _ in names]
    for k, (box, owner, label) in enumerate(zip(boxes, objects.owner.tolist(), objects.classes.tolist(), strict=True)):
        if not objects.crowd[k]:
            lines[owner].append(" ".join([str(written[label]), *(f"{v:.12g}" for v in box)]))
    for name, own in zip(names, lines, strict=True):
        path = (folder / name).with_suffix(ENDING)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{line}\n" for line in own), encoding="utf-8")


def write_yaml(path: Path, parts: list[str], labels: tuple[str, ...], numbers: tuple[int, ...]) -> None:
    """data.yaml beside images/ and labels/; numbers that YOLO cannot have are kept as `numbers`."""
    import yaml

    key = {part: key for key, part in reversed(KEYS.items())}
    values: dict[str, Any] = {"path": ".", **{key[part]: f"images/{part}" for part in parts}}
    written = number_classes(numbers)
    values["names"] = dict(zip(written, labels, strict=True))
    if written != numbers:
        values["numbers"] = list(numbers)
    files.write_text(path, yaml.safe_dump(values, sort_keys=False, allow_unicode=True))
