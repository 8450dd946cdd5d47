"""Folders of IDX files, as MNIST and its kin come: images and labels for training, and perhaps for the test."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from descend.data.images.idx import read_idx
from descend.data.images.labelled import Images, Splits, split_by_class
from descend.data.reading import is_folder, list_entries, show
from descend.data.streams.arrays import check_labels
from descend.errors import Mistake

MOST_CLASSES = 2**16


def is_idx_folder(folder: Path) -> bool:
    """Whether a folder holds IDX files, by their names."""
    return any(
        "idx" in p.name and ("images" in p.name or "labels" in p.name) for p in list_entries(folder) if p.is_file()
    )


def idx_folder(path: str | Path, valid: float = 0.15, test: float = 0.15) -> Splits:
    """A folder with train-images-idx3-ubyte and train-labels-idx1-ubyte, and t10k-… as test files if there are any."""
    folder = Path(path)
    if not is_folder(folder):
        raise Mistake(f"--data.path {folder} is not a folder; give the folder that holds the IDX files")
    pair = _pair(folder, ("train",))
    if pair is None:
        raise Mistake(f"--data.path {folder} holds no train-images-idx3-ubyte and train-labels-idx1-ubyte (or .gz)")
    train, y_file = pair
    check_labels(train.y, MOST_CLASSES, show(y_file))
    classes = int(train.y.max()) + 1
    pair = _pair(folder, ("t10k", "test"))
    if pair is None:
        return split(train, valid, test, classes)
    held, y_file = pair
    if held.x.shape[1:] != train.x.shape[1:]:
        raise Mistake(f"{folder}: test images are {_size(held)}, training images {_size(train)}; make them one size")
    check_labels(held.y, classes, show(y_file))
    valid_rows, rest = split_by_class(train.y, (valid,))
    return Splits(train.take(rest), train.take(valid_rows), held, tuple(map(str, range(classes))))


def split(images: Images, valid: float, test: float, classes: int) -> Splits:
    """Three parts of one set, whose classes are called 0, 1, .."""
    test_rows, valid_rows, rest = split_by_class(images.y, (test, valid))
    train, held = images.take(rest), images.take(valid_rows)
    return Splits(train, held, images.take(test_rows), tuple(map(str, range(classes))))


def images_of(pixels: np.ndarray, labels: np.ndarray) -> Images:
    """Grey images (n, h, w) in 0..1 and their classes."""
    x = torch.from_numpy(np.ascontiguousarray(pixels, np.float32))[:, None]
    return Images(x, torch.from_numpy(labels.astype(np.int64)), torch.arange(len(x)))


def _pair(folder: Path, words: tuple[str, ...]) -> tuple[Images, Path] | None:
    """The images and labels whose file names hold one of the words, and the labels' file; None if neither is there."""
    x_file, y_file = (_find(folder, words, what) for what in ("images", "labels"))
    if x_file is None and y_file is None:
        return None
    if x_file is None or y_file is None:
        there = x_file or y_file
        raise Mistake(f"{there} has no {'images' if x_file is None else 'labels'} file beside it; copy it there")
    pixels, labels = read_idx(x_file), read_idx(y_file)
    if pixels.ndim != 3 or pixels.dtype != np.uint8:
        raise Mistake(f"{x_file} holds {pixels.ndim} dimensions of {pixels.dtype}; images are 3 dimensions of uint8")
    if labels.ndim != 1 or labels.dtype.kind not in "ui":
        raise Mistake(f"{y_file} holds {labels.ndim} dimensions of {labels.dtype}; labels are 1 dimension of uint8")
    if len(pixels) != len(labels):
        raise Mistake(
            f"{x_file} holds {len(pixels)} images, but {y_file} {len(labels)} labels; they do not belong together"
        )
    if not pixels.size:
        raise Mistake(f"{x_file} holds no images; download it again")
    return images_of(np.divide(pixels, 255, dtype=np.float32), labels), y_file


def _find(folder: Path, words: tuple[str, ...], what: str) -> Path | None:
    """The one IDX file with these words in its name; the plain form is preferred to .gz."""
    found = sorted(
        (p for p in list_entries(folder) if "idx" in p.name and what in p.name and any(w in p.name for w in words)),
        key=lambda p: (p.suffix == ".gz", p.name),
    )
    if len({p.name.removesuffix(".gz") for p in found}) > 1:
        raise Mistake(f"{folder} holds several {words[0]} {what} files: {found[0].name}, {found[1].name}; keep one")
    return found[0] if found else None


def _size(images: Images) -> str:
    return "×".join(map(str, images.x.shape[-2:]))
