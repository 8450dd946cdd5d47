"""ImageSource for a recipe: what lies at --data.path is recognised, checked, and brought to one size.

    a folder of class folders, perhaps below train, valid, test        see `listing`
    a manifest, .csv or .jsonl, with path and label                    see `manifest`
    a folder of IDX files (MNIST), of CIFAR's binary files             see `idx_folder`, `cifar`
    nothing                                                            generated scenes, by the shape in them

A set that fits into `memory` is decoded once and kept as bytes; a larger one is decoded batch by batch, in processes of
its own (`stream`). The test part never helps to choose anything.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import torch

from descend.data.images import cifar
from descend.data.images.augment import Augment
from descend.data.images.check import Checked, check
from descend.data.images.facts import balance, describe_pixel_leaks, facts
from descend.data.images.files import SUFFIXES, cores, decode_all
from descend.data.images.frame import Frame
from descend.data.images.idx_folder import idx_folder, is_idx_folder
from descend.data.images.labelled import Images, Splits, check_shares, split_by_class
from descend.data.images.lazy import Bytes, Files
from descend.data.images.listing import Listing, any_folder, image_folder, manifest_listing
from descend.data.images.manifest import is_manifest
from descend.data.images.presets import Amounts, augmentation
from descend.data.images.warp import Warp
from descend.data.reading import check_file, is_folder
from descend.data.streams.arrays import generator
from descend.data.toys.scenes import COLOURS, SHAPES, one_object
from descend.errors import Mistake
from descend.ranges import Fraction, NonNegative, Range, SideOrAny

LISTS = ("metadata.csv", "metadata.jsonl", "manifest.csv", "manifest.jsonl", "labels.csv")
SCENES, SIDE = 2000, 32


@dataclass(frozen=True)
class ImageSource:
    """Which images to use, and how to prepare them."""

    path: str = ""
    """Folder of class folders, manifest (.csv, .jsonl), folder of IDX or CIFAR files; empty: generated scenes."""
    size: SideOrAny = 0
    """Side in pixels that images are resized to; 0: as they are."""
    valid: Fraction = 0.15
    """Share of the images that selects the checkpoint, where there is no such part."""
    test: Fraction = 0.15
    """Share held out for the final test, where there are no test files."""
    warp: Warp = field(default_factory=Warp)
    augment: str = "none"
    """Random changes of the training images: none, digits, photographs or randaugment."""
    amounts: Amounts = field(default_factory=Amounts)
    frame: str = "cover"
    """How images become squares: cover (the shorter edge fits, the middle is taken) or stretch."""
    channels: Annotated[int, Range(int, least=0, most=3)] = 0
    """1 makes images grey, 3 coloured; 0: as the files are."""
    memory: NonNegative = 1.0
    """Gigabytes that decoded images may take; a larger set is decoded batch by batch."""
    workers: Annotated[int, Range(int, least=-1, most=1024)] = -1
    """Processes that decode and augment; -1: none for a set in memory, else one less than there are cores."""
    group: str = ""
    """Column of a manifest that says what images belong to, e.g. a patient: all of a group go to the same part."""
    drop_last: bool = False
    """Drop the incomplete last batch of an epoch; else its images start the next epoch's first batch."""

    def __post_init__(self) -> None:
        if self.frame not in ("cover", "stretch"):
            raise Mistake(f"--data.frame {self.frame}: choose cover or stretch")
        if self.channels not in (0, 1, 3):
            raise Mistake(f"--data.channels {self.channels}: choose 1 (grey), 3 (colours) or 0 (as the files are)")
        if self.workers < -1 or self.memory < 0:
            raise Mistake(f"--data.workers {self.workers}, --data.memory {self.memory}: at least -1 and 0")
        if self.size < 0:
            raise Mistake(f"--data.size {self.size}: give the side in pixels, or 0 for images as they are")

    def read(self) -> Splits:
        """The three parts."""
        check_shares(self.valid, self.test)
        return self.at_path(Path(self.path), image_folder) if self.path else self.load_embedded()

    def read_unlabelled(self) -> Splits:
        """The three parts, for what needs no classes: a folder may also hold images that lie in no class folder."""
        check_shares(self.valid, self.test)
        return self.at_path(Path(self.path), any_folder) if self.path else self.load_embedded()

    def load_embedded(self) -> Splits:
        """Scenes of one object each; the class is its shape."""
        found = one_object(SCENES, self.size or SIDE, generator(0), [(s, c) for s in SHAPES for c in COLOURS])
        images = Images(found.x, found.shape[:, 0], torch.arange(SCENES))
        test, valid, rest = split_by_class(images.y, (self.test, self.valid))
        return Splits(images.take(rest), images.take(valid), images.take(test), SHAPES)

    @property
    def source(self) -> str:
        """Where the images come from, for people."""
        return self.path or "generated scenes, by shape"

    def at_path(self, path: Path, list_folder: Callable[[Path, float, float], Listing]) -> Splits:
        """What lies there; `list_folder` says how the images of a folder belong together."""
        if not is_folder(path):
            check_file(path)
            if is_manifest(path):
                return self.of_files(manifest_listing(path, self.valid, self.test, self.group))
            hint = "the folder it is in" if path.suffix.lower() in SUFFIXES else "a folder, a .csv or a .jsonl file"
            raise Mistake(f"--data.path {path} is one file; give {hint}")
        manifest = next((path / name for name in LISTS if (path / name).is_file()), None)
        if self.group and manifest is None:
            raise Mistake(f"--data.group {self.group}: {path} has no columns; list the images in a .csv file")
        if is_idx_folder(path):
            return idx_folder(path, self.valid, self.test).resize(self.size)
        if cifar.which(path):
            return cifar.cifar_folder(path, self.valid, self.test).resize(self.size)
        if manifest:
            return self.of_files(manifest_listing(manifest, self.valid, self.test, self.group))
        return self.of_files(list_folder(path, self.valid, self.test))

    def of_files(self, listing: Listing) -> Splits:
        """Every file is checked; then all are decoded, or left to be decoded batch by batch."""
        checked = check(listing.paths, listing.root)
        frame = self.square(listing, checked)
        channels = self.channels or (1 if checked.grey.all() else 3)
        numbers = len(listing.paths) * channels * frame.height * frame.width
        whole: Any = Files(listing.paths, channels, frame)
        if numbers <= self.memory * 2**30:
            whole = Bytes(decode_all(whole.paths, channels, frame, cores()))
        images = Images(whole, listing.y, torch.arange(len(listing.y)))
        train, valid, test = (images.take(listing.parts[name]) for name in ("train", "valid", "test"))
        return Splits(train, valid, test, listing.labels, listing.names, frame, facts(listing, checked))

    def square(self, listing: Listing, checked: Checked) -> Frame:
        """What images become: squares of `size`, or what they all are."""
        if self.size:
            return Frame(self.size, self.size, (self.size,) if self.frame == "cover" else ())
        sizes = list(checked.sizes)
        if len(sizes) > 1:
            of = [int(((checked.height == h) & (checked.width == w)).argmax()) for h, w in sizes[:2]]
            told = ", ".join(f"{listing.names[i]} {h}×{w}" for i, (h, w) in zip(of, sizes, strict=False))
            raise Mistake(f"the images have {len(sizes)} different sizes ({told}); give --data.size, e.g. 64")
        return Frame(*sizes[0])

    def changes(self) -> Augment:
        """What happens to a training image: the warp, then the set's transforms."""
        warp = () if self.warp.idle else (self.warp,)
        return Augment((*warp, *augmentation(self.augment, self.amounts)))

    def processes(self, images: Images) -> int:
        """How many processes decode and augment."""
        if self.workers >= 0:
            return self.workers
        return max(1, cores() - 1) if isinstance(images.x, Files) else 0


def describe_classes(splits: Splits) -> dict[str, Any]:
    """The facts of any source: its own, or those that follow from the classes."""
    y = torch.cat([splits.train.y, splits.valid.y, splits.test.y])
    pixels = {part: getattr(splits, part).x for part in ("train", "valid", "test")}
    return splits.facts or {**balance(y, splits.labels), **describe_pixel_leaks(pixels)}
