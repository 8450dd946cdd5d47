"""Labelled images for a trained classifier: named by the classes that it knows, sized as it was trained, none left out.

folder/CLASS/..            every image, by the name of its class folder
folder/{train,..,test}/..  the test part                manifest    its test part, or all where it has no parts
IDX or CIFAR files         their test part
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch

from descend.data.images import cifar
from descend.data.images.files import cores, decode_all
from descend.data.images.idx_folder import idx_folder, is_idx_folder
from descend.data.images.labelled import Images, Preprocessing, brought_to
from descend.data.images.lazy import Bytes, Files
from descend.data.images.listing import list_classes, list_folders
from descend.data.images.manifest import PARTS, is_manifest, read_manifest
from descend.data.images.source import LISTS
from descend.data.reading import check_file, is_folder
from descend.errors import Mistake, nearest

MEMORY = 2**30  # bytes that decoded images may take
SHARE = 0.15  # of files that are not cut into parts; the test part of those that are is what it is


def read_unseen(path: Path, prepare: Preprocessing) -> Images:
    """The images at a path, with the numbers that the model has for their classes."""
    if not is_folder(path):
        check_file(path)
        if not is_manifest(path):
            raise Mistake(f"--data.path {path} is one file; give a folder of class folders, or a .csv or .jsonl list")
        return list_manifest(path, prepare)
    binary = idx_folder if is_idx_folder(path) else cifar.cifar_folder if cifar.which(path) else None
    if binary:
        found = binary(path, SHARE, SHARE)
        numbers = torch.tensor(find_classes(found.labels, prepare.labels, str(path)))
        return Images(brought_to(found.test.x, prepare.image[1]), numbers[found.test.y], found.test.ids)
    manifest = next((path / name for name in LISTS if (path / name).is_file()), None)
    return list_manifest(manifest, prepare) if manifest else list_class_folders(path, prepare)


def list_class_folders(root: Path, prepare: Preprocessing) -> Images:
    """Every image of every class folder."""
    parts = {PARTS[f.name.lower()]: f for f in list_folders(root) if f.name.lower() in PARTS}
    if parts and "test" not in parts:
        raise Mistake(f"--data.path {root} has the parts {', '.join(parts)} but no test; name the part's own folder")
    root = parts.get("test", root)
    found = {name: images for name, (images, _) in list_classes(root).items()}
    if not found:
        raise Mistake(f"--data.path {root} holds no class folders; put the images of each class into its own folder")
    names = [name for name, images in found.items() for _ in images]
    return make_images([path for images in found.values() for path in images], names, prepare, str(root))


def list_manifest(file: Path, prepare: Preprocessing) -> Images:
    """The images of a list, those of its test part where it has parts."""
    found = read_manifest(file)
    if not found.labels:
        raise Mistake(f"{file} has no column label; add one to be judged by")
    rows = [i for i, part in enumerate(found.parts) if part == "test"] if found.parts else range(len(found.paths))
    if not rows:
        raise Mistake(f"{file}: no image has the part test; name some, or leave the column out")
    return make_images([found.paths[i] for i in rows], [found.labels[i] for i in rows], prepare, str(file))


def make_images(paths: Sequence[Path], names: Sequence[str], prepare: Preprocessing, where: str) -> Images:
    """Files that are decoded now, or batch by batch where they are many."""
    y, x = torch.tensor(find_classes(names, prepare.labels, where)), Files(paths, prepare.image[0], prepare.frame)
    few = x.shape.numel() <= MEMORY
    pixels = Bytes(decode_all(x.paths, x.channels, x.frame, cores())) if few else x
    return Images(pixels, y, torch.arange(len(paths)))


def find_classes(names: Sequence[str], known: Sequence[str], where: str) -> list[int]:
    """The number of each class; one that training did not know is named."""
    number = {name: k for k, name in enumerate(known)}
    strange = next((name for name in names if name not in number), None)
    if strange is not None:
        raise Mistake(
            f"{where}: the model knows no class {strange!r}.{nearest(strange, known)} Classes: {', '.join(known)}"
        )
    return [number[name] for name in names]
