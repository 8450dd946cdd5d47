"""PASCAL VOC's XML: a file for each image, and lists of images for each part.

    Annotations/a.xml      JPEGImages/a.jpg      ImageSets/Main/train.txt, val.txt, test.txt (a name per line)
    object                 name, bndbox xmin ymin xmax ymax, difficult

A box has its corners as they are written: the tools that write these files mean xmax − xmin by the width. (VOC's own
images count pixels from 1, both ends within: half a pixel off.) An object that is `difficult` is a crowd: neither
learned nor counted as missed. Images and XML may also lie in one folder, or in train, valid and test. A file that
declares entities or a document type is refused.

Systems: vision-datasets
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree
from xml.sax.saxutils import escape

import torch

from descend import files
from descend.data.detection.annotated import AnnotatedSet, Notes, Rows, build_objects, list_images, name_below
from descend.data.detection.objects import Objects
from descend.data.images.files import SUFFIXES, list_image_files
from descend.data.reading import list_files, read_records, read_text, show
from descend.errors import Mistake

PARTS = {"train": "train", "val": "valid", "valid": "valid", "test": "test"}
CORNERS = ("xmin", "ymin", "xmax", "ymax")
CLASSES = "classes.txt"
MOST_XML = 2**24


def read_voc(root: Path) -> AnnotatedSet:
    """All annotated images of a folder."""
    folder = root / "Annotations" if (root / "Annotations").is_dir() else root
    found = {show(path.relative_to(folder).with_suffix("")): path for path in list_files(folder, {".xml"})}
    found = {stem: path for stem, path in found.items() if path.suffix.lower() == ".xml"}
    images = dict(list_stems(root))
    notes, rows = Notes(), Rows()
    stems = sorted(images.keys() & found.keys())
    if not stems:
        place = show(folder)
        raise Mistake(
            f"0 of {len(images):,} images have labels; looked in {place} for {next(iter(images), 'a')}.xml; "
            "put the .xml files there, under the images' names"
        )
    notes.add(
        "images without a label file, left out",
        (name_below(images[s], root) for s in sorted(images.keys() - found.keys())),
    )
    notes.add(
        "label files without an image, left out",
        (name_below(found[s], root) for s in sorted(found.keys() - images.keys())),
    )
    paths = [images[stem] for stem in stems]
    listed = list_images(root, paths, [name_image(path, root) for path in paths])
    words: list[str] = []
    for i, stem in enumerate(stems):
        read_annotation(found[stem], i, tuple(listed.sizes[i].tolist()), rows, words, notes)
    numbers, labels = read_classes(root, words)
    index = {name: k for k, name in enumerate(labels)}
    for k, word in enumerate(words):
        if word not in index:
            raise Mistake(
                f"{show(found[stems[rows.image[k]]])}, object {rows.record[k]}: {word!r} is none of the names in "
                f"{CLASSES}; add it there, or correct it"
            )
    rows.label = [index[word] for word in words]
    objects, record = build_objects(listed, rows)
    parts = find_parts(root, stems, notes)
    shown = [name_below(found[stem], root) for stem in stems]
    return AnnotatedSet("voc", listed, objects, parts, labels, numbers, shown, record, "object", notes)


def list_stems(root: Path) -> Iterator[tuple[str, Path]]:
    """Name without ending, and file, of each image."""
    folder = next((root / name for name in ("JPEGImages", "images") if (root / name).is_dir()), root)
    paths, _ = list_image_files(folder)
    if not paths:
        raise Mistake(f"{show(folder)} holds no images; VOC's lie in JPEGImages/ beside Annotations/")
    for path in paths:
        yield show(path.relative_to(folder).with_suffix("")), path


def name_image(path: Path, root: Path) -> str:
    """A file by its path below JPEGImages."""
    folder = next((root / name for name in ("JPEGImages", "images") if (root / name).is_dir()), root)
    return name_below(path, folder)


def parse_xml(path: Path) -> ElementTree.Element:
    """The tree of a file without entities."""
    if path.stat().st_size > MOST_XML:
        raise Mistake(f"{show(path)} has {path.stat().st_size:,} bytes; at most {MOST_XML:,} are read")
    text = read_records(path)
    for word in ("<!DOCTYPE", "<!ENTITY"):
        if word in text:
            raise Mistake(f"{show(path)} declares {word[2:].lower()}; annotations need none: remove it")
    try:
        tree = ElementTree.fromstring(text)
        if next_depth(tree) > files.DEEPEST:
            raise Mistake(f"{show(path)}: elements are nested too deeply")
        return tree
    except (ElementTree.ParseError, ValueError, RecursionError) as error:
        raise Mistake(f"{show(path)} is not valid XML ({error}); write it again") from None


def next_depth(tree: ElementTree.Element) -> int:
    """How deeply elements lie within one another."""
    depth, level = 0, [tree]
    while level and depth <= files.DEEPEST:
        depth, level = depth + 1, [child for element in level for child in element]
    return depth


def read_annotation(path: Path, image: int, size: tuple[int, ...], rows: Rows, words: list[str], notes: Notes) -> None:
    """The objects of a file; `words` gains the name of each."""
    tree = parse_xml(path)
    if tree.tag != "annotation":
        raise Mistake(f"{show(path)}: the outermost element is {tree.tag[:60]!r}; VOC's is annotation")
    said = [tree.findtext(f"size/{name}") for name in ("height", "width")]
    if all(said) and [word.strip() for word in said if word] != [str(side) for side in size]:
        notes.add(
            "sizes that are not the image's", [f"{show(path)}: {'×'.join(map(str, said))}, not {size[0]}×{size[1]}"]
        )
    for number, entry in enumerate(tree.findall("object"), start=1):
        where = f"{show(path)}, object {number}"
        name = (entry.findtext("name") or "").strip()
        if not name:
            raise Mistake(f"{where} has no name; give its class: <name>cat</name>")
        corners = [read_number(entry.findtext(f"bndbox/{corner}"), f"{where}: {corner}") for corner in CORNERS]
        difficult = (entry.findtext("difficult") or "0").strip()
        if difficult not in ("0", "1"):
            raise Mistake(f"{where}: difficult is {difficult[:40]!r}; give 0 or 1")
        x0, y0, x1, y1 = corners
        rows.add(image, (x0, y0, x1, y1), 0, number, crowd=difficult == "1")
        words.append(name)


def read_number(text: str | None, where: str) -> float:
    try:
        value = float(text or "")
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise Mistake(f"{where} is {(text or 'missing')[:40]!r}; give a number of pixels")
    return value


def read_classes(root: Path, words: list[str]) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Numbers and names: those of classes.txt (a name, or number and name, per line), else the names used, sorted."""
    path = root / CLASSES
    if not path.is_file():
        labels = tuple(sorted(set(words)))
        if not labels:
            raise Mistake(f"{show(root)}: no file names an object; there is nothing to learn")
        return tuple(range(len(labels))), labels
    found: dict[str, int] = {}
    for number, line in enumerate(read_text(path).split("\n")):
        first, tab, rest = line.strip().partition("\t")
        if first:
            given = tab and first.isdecimal() and len(first) < 9
            found[rest if given else first] = int(first) if given else number
    if len(set(found.values())) < len(found) or not found:
        raise Mistake(f"{show(path)}: a number comes twice, or none at all; give each class a line of its own")
    return tuple(found.values()), tuple(found)


def find_parts(root: Path, stems: list[str], notes: Notes) -> dict[str, torch.Tensor]:
    """Rows of each part: by ImageSets/Main, by folders named train, valid and test, or all of them train."""
    row = {stem: i for i, stem in enumerate(stems)}
    lists = root / "ImageSets" / "Main"
    parts: dict[str, list[int]] = {}
    for key, part in PARTS.items():
        path = lists / f"{key}.txt"
        if path.is_file():
            for number, line in enumerate(read_text(path).split("\n"), start=1):
                stem = line.split()[0] if line.split() else ""
                stem = str(Path(stem).with_suffix("")) if Path(stem).suffix.lower() in SUFFIXES else stem
                if stem in row:
                    parts.setdefault(part, []).append(row[stem])
                elif stem:
                    notes.add(
                        "names in lists without image or label, left out",
                        [f"{name_below(path, root)}, line {number}: {stem}"],
                    )
    if not parts:
        for stem, i in row.items():
            folder = Path(stem).parts[0].lower()
            if len(Path(stem).parts) > 1 and folder in PARTS:
                parts.setdefault(PARTS[folder], []).append(i)
    if "train" not in parts:
        held = {i for rows in parts.values() for i in rows}
        parts["train"] = [i for i in row.values() if i not in held]
    twice = {part: sorted(set(rows)) for part, rows in parts.items()}
    return {part: torch.tensor(rows, dtype=torch.long) for part, rows in twice.items()}


def write_voc(folder: Path, objects: Objects, names: list[str], labels: tuple[str, ...]) -> None:
    """An XML file for each image, in `folder`."""
    items: list[list[str]] = [[] for _ in names]
    classes, crowd, owners = objects.classes.tolist(), objects.crowd.tolist(), objects.owner.tolist()
    for box, label, difficult, owner in zip(objects.boxes.tolist(), classes, crowd, owners, strict=True):
        corners = "".join(f"<{c}>{round(v, 6):.12g}</{c}>" for c, v in zip(CORNERS, box, strict=True))
        items[owner].append(
            f"  <object>\n    <name>{escape(labels[label])}</name>\n    <difficult>{int(difficult)}</difficult>\n"
            f"    <bndbox>{corners}</bndbox>\n  </object>\n"
        )
    for name, own, (height, width) in zip(names, items, objects.sizes.tolist(), strict=True):
        path = (folder / name).with_suffix(".xml")
        path.parent.mkdir(parents=True, exist_ok=True)
        size = f"<width>{width}</width><height>{height}</height><depth>3</depth>"
        head = f"<annotation>\n  <filename>{escape(Path(name).name)}</filename>\n  <size>{size}</size>\n"
        path.write_text(f"{head}{''.join(own)}</annotation>\n", encoding="utf-8")
