"""Handwritten digits: scikit-learn's 1797 images of 8×8, inside the package, or what lies at --data.path (MNIST).

The embedded digits are cut into train, valid and test once and for all; the cut does not depend on the run's seed, so
the test images never help to choose anything. A folder of IDX files keeps its own test files and gives up a part of its
training files for validation.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from descend.data.images.idx_folder import images_of, split
from descend.data.images.labelled import Splits
from descend.data.images.source import ImageSource


@dataclass(frozen=True)
class Digits(ImageSource):
    """Which images to use, and how to prepare them."""

    path: str = ""
    """Folder of IDX files (MNIST's, plain or .gz) or any other source of images; empty: the embedded digits."""

    @property
    def source(self) -> str:
        return self.path or "scikit-learn's digits"

    def load_embedded(self) -> Splits:
        return load_digits_split(self.valid, self.test).resize(self.size)


def load_digits_split(valid: float = 0.15, test: float = 0.15) -> Splits:
    """scikit-learn's digits, grey values 0..16 scaled to 0..1."""
    images, classes = read_sklearn()
    return split(images_of(images / 16, classes), valid, test, classes=10)


def read_sklearn() -> tuple[np.ndarray, np.ndarray]:
    """Images (1797, 8, 8) and classes, out of scikit-learn's file: to import scikit-learn takes a second."""
    package = find_spec("sklearn")
    file = Path(package.origin or "").parent / "datasets/data/digits.csv.gz" if package else Path()
    if not file.is_file():
        from sklearn.datasets import load_digits

        bunch = load_digits()
        return bunch.images, bunch.target
    rows = np.loadtxt(file, delimiter=",")
    return rows[:, :-1].reshape(-1, 8, 8), rows[:, -1].astype(int)
