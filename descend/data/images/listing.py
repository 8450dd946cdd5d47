"""What lies in a folder of images, or in a manifest: files, classes and parts, before anything is decoded.

    folder/CLASS/*.jpg                       one class a folder; cut into parts by share
    folder/{train,valid|val,test}/CLASS/..   parts as they are; a part that is missing is cut from train
    list.csv, list.jsonl                     path, label and perhaps part (see `manifest`)

Classes are in the order of their names (of their values, where all are numbers). Within a class folder images may lie
at any depth. The cut keeps every class's share, or (--data.group) whole groups; it does not depend on the run's seed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from descend.data.images.files import SUFFIXES, list_image_files
from descend.data.images.labelled import split_by_class
from descend.data.images.manifest import PARTS, read_manifest
from descend.data.reading import list_entries, show
from descend.data.streams.splits import split_by_group
from descend.errors import Mistake, nearest


@dataclass(frozen=True)
class Listing:
    """n image files, their classes, and the rows of the three parts."""

    root: Path
    paths: list[Path]
    y: Tensor
    labels: tuple[str, ...]
    parts: dict[str, Tensor]
    others: int = 0
    """Files in the folders whose suffix is not that of an image."""

    @property
    def names(self) -> tuple[str, ...]:
        """The paths below the root."""
        return tuple(_below(path, self.root) for path in self.paths)


def image_folder(path: str | Path, valid: float, test: float) -> Listing:
    """A folder of class folders, perhaps below folders of parts."""
    root = Path(path)
    folders = list_folders(root)
    parts = {PARTS[f.name.lower()]: f for f in folders if f.name.lower() in PARTS}
    if "train" in parts and list_folders(parts["train"]):
        return _in_parts(root, folders, parts, valid, test)
    found = list_classes(root)
    labels = _labels(root, found)
    paths = [path for label in labels for path in found[label][0]]
    y = _numbers([label for label in labels for _ in found[label][0]], labels)
    return Listing(root, paths, y, labels, _split(y, {}, valid, test), sum(len(found[k][1]) for k in labels))


def any_folder(path: str | Path, valid: float, test: float) -> Listing:
    """As `image_folder`; a folder without two class folders, or with images beside them, is one class of images."""
    root = Path(path)
    folders, loose = list_folders(root), [p for p in list_entries(root) if p.suffix.lower() in SUFFIXES]
    if len(folders) > 1 and not loose:
        return image_folder(root, valid, test)
    paths, others = list_image_files(root)
    if not paths:
        raise Mistake(f"{root} holds no images; give a folder with files that end in {', '.join(sorted(SUFFIXES))}")
    y = torch.zeros(len(paths), dtype=torch.long)
    return Listing(root, paths, y, ("image",), _split(y, {}, valid, test), len(others))


def _in_parts(root: Path, folders: list[Path], parts: dict[str, Path], valid: float, test: float) -> Listing:
    if len(parts) != len(folders):
        odd = next(f.name for f in folders if f not in parts.values())
        raise Mistake(f"{root} holds {odd} beside its parts; keep only train, valid and test, one of each")
    found = {part: list_classes(folder) for part, folder in parts.items()}
    labels = _labels(parts["train"], found["train"])
    paths: list[Path] = []
    words: list[str] = []
    rows: dict[str, list[int]] = {}
    others = 0
    for part, classes in found.items():
        for label, (images, rest) in classes.items():
            if label not in labels:
                raise Mistake(
                    f"{parts[part] / label} is a class that {parts['train']} does not have.{nearest(label, labels)} "
                    f"Give it training images or remove it"
                )
            rows.setdefault(part, []).extend(range(len(paths), len(paths) + len(images)))
            paths += images
            words += [label] * len(images)
            others += len(rest)
    y = _numbers(words, labels)
    given = {part: torch.tensor(r) for part, r in rows.items()}
    return Listing(root, paths, y, labels, _split(y, given, valid, test), others)


def manifest_listing(path: str | Path, valid: float, test: float, group: str = "") -> Listing:
    """The images of a manifest with labels."""
    file = Path(path)
    found = read_manifest(file, group)
    if not found.labels:
        raise Mistake(f"{file} has captions but no column label; a classifier needs one")
    labels = _sort_names(set(found.labels))
    if len(labels) < 2:
        raise Mistake(f"{file}: {len(labels)} different labels; a classifier needs two or more")
    y = _numbers(found.labels, labels)
    given = {p: torch.tensor([i for i, q in enumerate(found.parts) if q == p]) for p in sorted(set(found.parts))}
    if given and "train" not in given:
        raise Mistake(f"{file}: no image has the part train; name some")
    if given and (never := set(y.tolist()) - set(y[given["train"]].tolist())):
        raise Mistake(f"{file}: no training image has the label {labels[min(never)]!r}; add some or remove it")
    parts = _split(y, given, valid, test, found.groups)
    if group and (never := set(y.tolist()) - set(y[parts["train"]].tolist())):
        raise Mistake(
            f"--data.group {group}: no group with {labels[min(never)]!r} is left to train on; give more groups"
        )
    return Listing(file.parent, found.paths, y, labels, parts)


def _split(
    y: Tensor, given: dict[str, Tensor], valid: float, test: float, groups: Sequence[str] = ()
) -> dict[str, Tensor]:
    """The three parts: those given, and a share of train for each that is missing."""
    shares = {name: share for name, share in (("test", test), ("valid", valid)) if name not in given}
    train = given.get("train", torch.arange(len(y)))
    cuts = tuple(shares.values())
    *held, rest = split_by_group([groups[i] for i in train], cuts) if groups else split_by_class(y[train], cuts)
    cut = {name: train[rows] for name, rows in zip(shares, held, strict=True)}
    return {**given, **cut, "train": train[rest]}


def list_folders(folder: Path) -> list[Path]:
    """The folders in a folder that are not hidden."""
    return [p for p in list_entries(folder) if p.is_dir() and not p.name.startswith(".")]


def list_classes(folder: Path) -> dict[str, tuple[list[Path], list[Path]]]:
    """Class -> its images, and its other files. An image that lies in no class folder is a mistake."""
    loose = next((p for p in list_entries(folder) if p.is_file() and p.suffix.lower() in SUFFIXES), None)
    if loose:
        raise Mistake(
            f"{loose} lies in no class folder; put the images of each class into its own folder "
            f"({folder.name}/cat/..), or give a manifest: a .csv file with the columns path,label"
        )
    found = {show(f.name): list_image_files(f) for f in list_folders(folder)}
    empty = next((name for name, (images, _) in found.items() if not images), None)
    if empty:
        raise Mistake(f"{folder / empty} holds no images; add some or remove it")
    return found


def _labels(folder: Path, found: dict[str, tuple[list[Path], list[Path]]]) -> tuple[str, ...]:
    if len(found) < 2:
        raise Mistake(f"{folder} holds {len(found)} class folders; a classifier needs two or more")
    return _sort_names(set(found))


def _sort_names(names: set[str]) -> tuple[str, ...]:
    numbers = all(name.isdecimal() for name in names)
    return tuple(sorted(names, key=(lambda n: (int(n), n)) if numbers else (lambda n: (0, n))))


def _numbers(words: list[str], labels: tuple[str, ...]) -> Tensor:
    number = {label: i for i, label in enumerate(labels)}
    return torch.tensor([number[word] for word in words])


def _below(path: Path, root: Path) -> str:
    return show(path.relative_to(root) if path.is_relative_to(root) else path)
