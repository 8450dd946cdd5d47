"""Handwritten digits: scikit-learn's 1797 images of 8×8, inside the package, or the user's own IDX files (MNIST).

The embedded digits are cut into train, valid and test once and for all; the cut does not depend on the run's seed, so
the test images never help to choose anything. A folder of IDX files keeps its own test files and gives up a part of its
training files for validation.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch

from descend.data.arrays import check_labels
from descend.data.idx import read_idx
from descend.data.images import Images, Splits, check_shares, stratified
from descend.data.warp import Warp
from descend.errors import Mistake


@dataclass(frozen=True)
class Digits:
    """Which images, and how they are prepared."""

    path: str = ""
    """Folder of IDX files (MNIST's, plain or .gz); empty: the embedded digits."""
    size: int = 0
    """Side in pixels that images are brought to; 0: as they are."""
    valid: float = 0.15
    """Share of the images that selects the checkpoint."""
    test: float = 0.15
    """Share that is held out for the final figure, where there are no test files."""
    warp: Warp = field(default_factory=Warp)

    def read(self) -> Splits:
        """The three parts."""
        check_shares(self.valid, self.test)
        parts = idx_folder(self.path, self.valid, self.test) if self.path else embedded(self.valid, self.test)
        return parts.resized(self.size)


def embedded(valid: float = 0.15, test: float = 0.15) -> Splits:
    """scikit-learn's digits, grey values 0..16 brought to 0..1."""
    from sklearn.datasets import load_digits  # here, since it takes a second to import

    bunch = load_digits()
    return _split(_images(bunch.images / 16, bunch.target), valid, test, classes=10)


def idx_folder(path: str | Path, valid: float = 0.15, test: float = 0.15) -> Splits:
    """A folder with train-images-idx3-ubyte and train-labels-idx1-ubyte, and t10k-… as test files if there are any."""
    folder = Path(path)
    if not folder.is_dir():
        raise Mistake(f"--data.path {folder} is not a folder; give the folder that holds the IDX files")
    pair = _pair(folder, ("train",))
    if pair is None:
        raise Mistake(f"--data.path {folder} holds no train-images-idx3-ubyte and train-labels-idx1-ubyte (or .gz)")
    train, y_file = pair
    classes = int(train.y.max()) + 1
    check_labels(train.y, classes, str(y_file))
    pair = _pair(folder, ("t10k", "test"))
    if pair is None:
        return _split(train, valid, test, classes)
    held, y_file = pair
    if held.x.shape[1:] != train.x.shape[1:]:
        raise Mistake(f"{folder}: test images are {_size(held)}, training images {_size(train)}; make them one size")
    check_labels(held.y, classes, str(y_file))
    valid_rows, rest = stratified(train.y, (valid,))
    return Splits(train.take(rest), train.take(valid_rows), held, tuple(map(str, range(classes))))


def _split(images: Images, valid: float, test: float, classes: int) -> Splits:
    test_rows, valid_rows, rest = stratified(images.y, (test, valid))
    train, held = images.take(rest), images.take(valid_rows)
    return Splits(train, held, images.take(test_rows), tuple(map(str, range(classes))))


def _images(pixels: np.ndarray, labels: np.ndarray) -> Images:
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
        raise Mistake(f"{x_file} holds no images; fetch it again")
    return _images(np.divide(pixels, 255, dtype=np.float32), labels), y_file


def _find(folder: Path, words: tuple[str, ...], what: str) -> Path | None:
    """The one IDX file with these words in its name; the plain form is preferred to .gz."""
    found = sorted(
        (p for p in folder.iterdir() if "idx" in p.name and what in p.name and any(w in p.name for w in words)),
        key=lambda p: (p.suffix == ".gz", p.name),
    )
    if len({p.name.removesuffix(".gz") for p in found}) > 1:
        raise Mistake(f"{folder} holds several {words[0]} {what} files: {found[0].name}, {found[1].name}; keep one")
    return found[0] if found else None


def _size(images: Images) -> str:
    return "×".join(map(str, images.x.shape[-2:]))
