"""What a folder of annotated images holds, as its files say it: nothing is mended here, so that it can be written back.

notes      what is odd: kind -> where. A run says how many and names the first; --data.strict makes each an error
records    each object knows its file and its place there: "labels/a.txt, line 3"
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from descend.data.detection.objects import Objects, PhotoFiles
from descend.data.images.check import Checked, check
from descend.data.images.files import cores, open_image
from descend.data.reading import show
from descend.errors import Mistake

SHOWN = 3  # examples that a note names
SIDEWAYS = 0x0112  # EXIF's number of the orientation


class Notes:
    """Kind -> where it was found."""

    def __init__(self) -> None:
        self.found: dict[str, list[str]] = {}

    def add(self, kind: str, where: Iterable[str]) -> None:
        """A kind is told only if there is one."""
        places = list(where)
        if places:
            self.found.setdefault(kind, []).extend(places)

    def facts(self) -> dict[str, str]:
        """Kind -> how many, and the first few."""
        return {kind: shorten_list(where) for kind, where in self.found.items()}

    def refuse(self) -> None:
        """The first of them as a mistake."""
        for kind, where in self.found.items():
            raise Mistake(
                f"--data.strict: {kind}, {shorten_list(where)}; correct the files, or leave --data.strict out"
            )


def shorten_list(where: Sequence[str]) -> str:
    """3: a; b; c, or the first few of many."""
    return f"{len(where):,}: {'; '.join(where[:SHOWN])}{' ..' if len(where) > SHOWN else ''}"


@dataclass
class Rows:
    """Objects in the making: one entry of each list for each object."""

    image: list[int] = field(default_factory=list)
    box: list[tuple[float, float, float, float]] = field(default_factory=list)
    label: list[int] = field(default_factory=list)
    crowd: list[bool] = field(default_factory=list)
    area: list[float] = field(default_factory=list)
    """Below 0: that of the box."""
    outline: list[Any] = field(default_factory=list)
    record: list[int] = field(default_factory=list)
    """The number of its line, object or annotation in its file."""

    def add(
        self,
        image: int,
        box: tuple[float, float, float, float],
        label: int,
        record: int,
        crowd: bool = False,
        area: float = -1.0,
        outline: Any = None,
    ) -> None:
        self.image.append(image)
        self.box.append(box)
        self.label.append(label)
        self.record.append(record)
        self.crowd.append(crowd)
        self.area.append(area)
        self.outline.append(outline)


@dataclass(frozen=True)
class Listed:
    """The image files of a folder, looked at."""

    root: Path
    paths: list[Path]
    names: tuple[str, ...]
    checked: Checked
    turned: list[int]
    """Those that their EXIF note turns."""

    @property
    def sizes(self) -> Tensor:
        """Height and width as seen upright (n, 2)."""
        return torch.from_numpy(np.stack([self.checked.height, self.checked.width], 1).astype(np.int64))


@dataclass(frozen=True)
class AnnotatedSet:
    """Images, objects, classes and parts of a folder."""

    form: str
    """coco, yolo or voc."""
    listed: Listed
    objects: Objects
    parts: dict[str, Tensor]
    """Rows of the parts that the folder has; at least train."""
    labels: tuple[str, ...]
    numbers: tuple[int, ...]
    """The number of each class in the files."""
    files: list[str]
    """The file that annotates each image (n)."""
    record: Tensor
    word: str
    """What a record is called: line, object, annotation."""
    notes: Notes

    def name_records(self, which: Tensor) -> list[str]:
        """Where the objects are written for which this (k) is true."""
        rows = which.nonzero().flatten().tolist()
        owner, record = self.objects.owner, self.record
        return [f"{self.files[int(owner[k])]}, {self.word} {int(record[k])}" for k in rows]


def list_images(root: Path, paths: list[Path], names: Sequence[str]) -> Listed:
    """Every file is opened and looked at; a broken one is a mistake that names it."""
    checked = check(paths, root)
    with ThreadPoolExecutor(cores()) as pool:
        turned = [i for i, t in enumerate(pool.map(is_turned, paths)) if t]
    return Listed(root, paths, tuple(names), checked, turned)


def is_turned(path: Path) -> bool:
    with open_image(path) as image:
        return image.getexif().get(SIDEWAYS, 1) != 1


def build_objects(listed: Listed, rows: Rows, ids: Tensor | None = None) -> tuple[Objects, Tensor]:
    """The objects in the order of their images, and the record of each."""
    n, k = len(listed.paths), len(rows.image)
    owner = torch.tensor(rows.image, dtype=torch.long)
    order = owner.argsort(stable=True)
    boxes = torch.tensor(rows.box, dtype=torch.float64).view(k, 4)[order]
    area = torch.tensor(rows.area, dtype=torch.float64)[order]
    size = boxes[:, 2:] - boxes[:, :2]
    outlines = tuple(rows.outline[i] for i in order.tolist()) if any(o is not None for o in rows.outline) else ()
    objects = Objects(
        PhotoFiles(listed.paths),
        listed.sizes,
        boxes,
        owner[order],
        torch.tensor(rows.label, dtype=torch.long)[order],
        torch.tensor(rows.crowd, dtype=torch.bool)[order],
        torch.where(area < 0, size.clamp_min(0).prod(1), area),
        torch.arange(n) if ids is None else ids,
        listed.names,
        outlines,
    )
    return objects, torch.tensor(rows.record, dtype=torch.long)[order]


def name_below(path: Path, root: Path) -> str:
    """A file by its path below a folder, or by its name alone where it lies elsewhere."""
    try:
        return show(path.relative_to(root))
    except ValueError:
        return show(path.name)
