"""CIFAR-10 and CIFAR-100 in their binary version: records of label bytes and 3 × 32 × 32 colour bytes.

    CIFAR-10    1 byte label        | 1024 red | 1024 green | 1024 blue       data_batch_1.bin .. 5, test_batch.bin
    CIFAR-100   1 coarse, 1 fine    | the same                                train.bin, test.bin

The classes are called as batches.meta.txt or fine_label_names.txt say. The version for Python is a pickle, which can
run any program when it is opened; it is refused.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from descend.data.images.labelled import Images, Splits, split_by_class
from descend.data.images.lazy import Bytes
from descend.data.reading import read_bytes, read_text
from descend.data.streams.arrays import check_labels
from descend.errors import Mistake

SIDE, CHANNELS = 32, 3
PIXELS = CHANNELS * SIDE * SIDE
PICKLED = {"data_batch_1": "cifar-10-binary.tar.gz", "test_batch": "cifar-10-binary.tar.gz"}
SETS = {
    10: ("data_batch_*.bin", "test_batch.bin", "batches.meta.txt", 1),
    100: ("train.bin", "test.bin", "fine_label_names.txt", 2),
}


def which(folder: Path) -> int:
    """10 or 100 when the folder holds a CIFAR set, else 0."""
    if any((folder / name).is_file() for name in PICKLED):
        raise Mistake(
            f"--data.path {folder} holds the pickled version of CIFAR, which descend never opens; "
            f"download the binary version, {PICKLED['test_batch']}"
        )
    if all((folder / name).is_file() for name in ("train", "test", "meta")):
        raise Mistake(
            f"--data.path {folder} holds the pickled version of CIFAR-100, which descend never opens; "
            f"download the binary version, cifar-100-binary.tar.gz"
        )
    return next((k for k, (train, *_) in SETS.items() if any(folder.glob(train))), 0)


def cifar_folder(path: str | Path, valid: float = 0.15, test: float = 0.15) -> Splits:
    """The training files, a share of them for validation, and the test file (or a share, where there is none)."""
    folder = Path(path)
    classes = which(folder)
    if not classes:
        raise Mistake(f"--data.path {folder} holds no data_batch_1.bin and no train.bin")
    train_files, test_file, names_file, bytes_of_label = SETS[classes]
    files = sorted(folder.glob(train_files))
    batches = [_records(file, bytes_of_label, classes) for file in files]
    x, y = (np.concatenate([batch[i] for batch in batches]) for i in (0, 1))
    names = _names(folder / names_file, classes)
    whole = Images(Bytes(torch.from_numpy(x)), torch.from_numpy(y), torch.arange(len(y)))
    if (folder / test_file).is_file():
        x, y = _records(folder / test_file, bytes_of_label, classes)
        held = Images(Bytes(torch.from_numpy(x)), torch.from_numpy(y), torch.arange(len(y)))
        valid_rows, rest = split_by_class(whole.y, (valid,))
        return Splits(whole.take(rest), whole.take(valid_rows), held, names)
    test_rows, valid_rows, rest = split_by_class(whole.y, (test, valid))
    return Splits(whole.take(rest), whole.take(valid_rows), whole.take(test_rows), names)


def _records(file: Path, bytes_of_label: int, classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Images (n, 3, 32, 32) and labels (n); the last label byte is the class."""
    data, record = np.frombuffer(read_bytes(file), np.uint8), bytes_of_label + PIXELS
    if not len(data) or len(data) % record:
        raise Mistake(
            f"{file} has {len(data)} bytes, not a whole number of {record}-byte records; "
            "it is truncated, download it again"
        )
    rows = data.reshape(-1, record)
    y = rows[:, bytes_of_label - 1].astype(np.int64)
    check_labels(torch.from_numpy(y), classes, str(file))
    return rows[:, bytes_of_label:].reshape(-1, CHANNELS, SIDE, SIDE).copy(), y


def _names(file: Path, classes: int) -> tuple[str, ...]:
    """The names in a file, one per line; numbers where there is no such file."""
    if not file.exists() and not file.is_symlink():
        return tuple(map(str, range(classes)))
    names = tuple(line.strip() for line in read_text(file).split("\n") if line.strip())
    if len(names) != classes or len(set(names)) != classes:
        raise Mistake(f"{file} names {len(set(names))} classes, the data has {classes}; download it again")
    return names
