"""DetectionSource for a recipe: images with objects, from the user's folder or generated.

    a folder, a data.yaml, a COCO .json     see `formats`; its parts, or a cut by share where it has none
    nothing                                 generated scenes of 1 to 4 objects; the class is the shape

The cut into train, valid and test does not depend on the run's seed; equal images of a folder go to the same part.
What is odd about a folder is told (`clean`, `facts`) and mended; with --data.strict it is a mistake.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Annotated, Any

import torch
from torch import Tensor

from descend.data.detection.annotated import AnnotatedSet
from descend.data.detection.augment import ObjectAugment
from descend.data.detection.clean import clean
from descend.data.detection.facts import describe_folder, describe_objects
from descend.data.detection.formats import read_annotated
from descend.data.detection.framing import Framing, Letterbox
from descend.data.detection.objects import DetectionSplits, Objects, StackedPixels
from descend.data.detection.outlines import with_masks
from descend.data.detection.prepare import DetectionPreprocessing
from descend.data.detection.stream import Changes, shuffle_objects
from descend.data.images.files import cores
from descend.data.images.labelled import check_shares
from descend.data.images.stream import Ahead
from descend.data.streams.arrays import generator
from descend.data.streams.splits import keep_together
from descend.data.toys.scenes import SHAPES, scenes
from descend.errors import Mistake, nearest
from descend.ranges import Count, Fraction, NonNegative, Range, SideOrAny

SCENES_SIDE, FOLDER_SIDE = 96, 320
OBJECTS = 1, 4  # in a generated scene


@dataclass(frozen=True)
class DetectionSource:
    """Which images with objects, and how they are prepared."""

    path: str = ""
    """Folder in the form of COCO, YOLO or VOC; empty: generated scenes."""
    size: SideOrAny = 0
    """Side of the detector's input in pixels; 0: 96 for scenes, 320 for a folder."""
    scenes: Count = 3000
    """How many scenes are generated."""
    valid: Fraction = 0.15
    """Share of the images that selects the checkpoint, where there is no such part."""
    test: Fraction = 0.15
    """Share held out for the final test, where there is no such part."""
    memory: NonNegative = 1.0
    """Gigabytes that framed images may take; a larger set is decoded batch by batch."""
    workers: Annotated[int, Range(int, least=-1, most=1024)] = -1
    """Processes that decode and augment; -1: none for a set in memory, else one less than there are cores."""

    masks: bool = False
    """Bring the masks of the objects too: of scenes, or of polygons."""
    strict: bool = False
    """Refuse a folder with anything odd in it: boxes without area or outside, duplicates, missing files."""
    augment: ObjectAugment = field(default_factory=ObjectAugment)

    def read(self) -> DetectionSplits:
        """The three parts."""
        check_shares(self.valid, self.test)
        return self.read_folder(read_annotated(self.path)) if self.path else self.load_embedded()

    def load_embedded(self) -> DetectionSplits:
        """Generated scenes."""
        objects = generate_objects(self.scenes, self.side)
        parts = self.cut(torch.arange(len(objects)), {})
        return self.gather(objects, parts, SHAPES, describe_objects(objects, SHAPES, self.framing))

    def read_folder(self, found: AnnotatedSet) -> DetectionSplits:
        """The parts that the folder has, and a share of its training images for each that is missing."""
        objects, _ = clean(found)
        if self.strict:
            found.notes.refuse()
        rows = found.parts["train"]
        digests = [digest.tobytes() for digest in found.listed.checked.digest]
        given = {part: rows for part, rows in found.parts.items() if part != "train"}
        parts = given | self.cut(rows, given, [digests[i] for i in rows.tolist()])
        facts = describe_folder(found, objects, parts, self.framing)
        return self.gather(objects, parts, found.labels, facts, found.numbers)

    def gather(
        self,
        objects: Objects,
        parts: dict[str, Tensor],
        labels: tuple[str, ...],
        facts: dict[str, Any],
        numbers: tuple[int, ...] = (),
    ) -> DetectionSplits:
        """The parts, with or without masks."""
        objects = with_masks(objects) if self.masks else replace(objects, instances=None)
        train, valid, test = (objects.take(parts[part]) for part in ("train", "valid", "test"))
        return DetectionSplits(train, valid, test, labels, facts, numbers)

    def read_unseen(self, path: str, labels: tuple[str, ...]) -> Objects:
        """Every image of a folder, by the classes that a trained model knows."""
        found = read_annotated(path)
        objects, _ = clean(found)
        unknown = [name for name in found.labels if name not in labels]
        if unknown:
            raise Mistake(
                f"{path}: the model does not know the class {unknown[0]!r}.{nearest(unknown[0], labels)} "
                f"It knows {', '.join(labels)}"
            )
        index = torch.tensor([labels.index(name) for name in found.labels])
        return replace(objects, classes=index[objects.classes])

    @property
    def side(self) -> int:
        """The side of the detector's input."""
        return self.size or (FOLDER_SIDE if self.path else SCENES_SIDE)

    @property
    def framing(self) -> Framing:
        return Letterbox(self.side)

    @property
    def source(self) -> str:
        """Where the images come from, for people."""
        return self.path or "generated scenes"

    def processes(self, train: Objects) -> int:
        """How many processes decode and augment."""
        if self.workers >= 0:
            return self.workers
        small = isinstance(train.pixels, StackedPixels) or len(train) * 3 * self.side**2 <= self.memory * 2**30
        return 0 if small else max(1, cores() - 1)

    def shuffle(
        self,
        train: Objects,
        prepare: DetectionPreprocessing,
        batch: int,
        seed: int,
        where: tuple[int, int],
        run: tuple[int, int],
    ) -> Ahead:
        """Training batches of `batch` images; `run` is the images of a step and the steps of the whole run."""
        changes = Changes(self.augment, *run)
        return shuffle_objects(train, prepare, batch, seed, where, self.memory, self.processes(train), changes)

    def cut(self, rows: Tensor, given: dict[str, Tensor], digests: Sequence[bytes] = ()) -> dict[str, Tensor]:
        """Rows for train and for the parts that are not given; equal images stay together."""
        n = len(rows)
        shares = {"test": self.test, "valid": self.valid}
        sizes = {part: max(1, round(share * n)) for part, share in shares.items() if part not in given}
        if sum(sizes.values()) >= n:
            raise Mistake(f"{n} training images are too few to cut {' and '.join(sizes)} from them; give more")
        order = torch.randperm(n, generator=generator(0)).split([*sizes.values(), n - sum(sizes.values())])
        found = [part.sort().values for part in order]
        together = keep_together(digests, found) if digests else found
        found = together if all(map(len, together)) else found
        return {part: rows[which] for part, which in zip((*sizes, "train"), found, strict=True)}


@lru_cache(maxsize=2)
def generate_objects(n: int, side: int) -> Objects:
    """n scenes, always the same ones; the class is the shape."""
    if n < 3:
        raise Mistake(f"--data.scenes {n}: give at least 3, one for each part")
    found = scenes(n, side, generator(0, side), OBJECTS)
    owner, which = found.present.nonzero(as_tuple=True)
    boxes = found.box[owner, which].double()
    x = (found.x * 255).round().to(torch.uint8).movedim(1, 3).contiguous()
    return Objects(
        StackedPixels(x),
        torch.full((n, 2), side),
        boxes,
        owner,
        found.shape[owner, which],
        torch.zeros(len(owner), dtype=torch.bool),
        count_pixels(found.instance, found.present),
        torch.arange(n),
        tuple(f"scene {i}" for i in range(n)),
        (),
        StackedPixels(found.instance.to(torch.uint8)),
        which + 1,
    )


def count_pixels(instance: Tensor, present: Tensor) -> Tensor:
    """Visible pixels of each object that is present, of maps (n, h, w) and objects (n, o) -> (k)"""
    n, o = present.shape
    keys = instance.flatten(1) + (o + 1) * torch.arange(n)[:, None]
    counts = torch.bincount(keys.flatten(), minlength=n * (o + 1)).view(n, o + 1)
    return counts[:, 1:][present].double()
