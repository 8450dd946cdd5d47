"""The embedded digits and folders of IDX files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from descend.data.images.digits import Digits, load_digits_split
from descend.data.images.idx import write_idx
from descend.data.images.idx_folder import idx_folder
from descend.errors import Mistake
from tests.close import close

NAMES = {
    "x": "train-images-idx3-ubyte",
    "y": "train-labels-idx1-ubyte",
    "tx": "t10k-images-idx3-ubyte",
    "ty": "t10k-labels-idx1-ubyte",
}


def write(folder: Path, suffix: str = "", **changes: np.ndarray | None) -> Path:
    """Forty images of 6×5 in four classes, and eight for the test; a change replaces an array, None leaves it out."""
    random = np.random.default_rng(0)
    arrays: dict[str, np.ndarray | None] = {
        "x": random.integers(0, 256, (40, 6, 5), np.uint8),
        "y": np.arange(40, dtype=np.uint8) % 4,
        "tx": random.integers(0, 256, (8, 6, 5), np.uint8),
        "ty": np.arange(8, dtype=np.uint8) % 4,
    }
    for key, array in (arrays | changes).items():
        if array is not None:
            write_idx(folder / (NAMES[key] + suffix), array)
    return folder


def test_embedded_parts_are_the_whole_and_disjoint() -> None:
    parts = load_digits_split()
    records = torch.cat([part.ids for part in (parts.train, parts.valid, parts.test)])
    assert sorted(records.tolist()) == list(range(1797))
    assert (len(parts.train.y), len(parts.valid.y), len(parts.test.y)) == (1258, 270, 269)
    bunch = load_digits()
    for part in (parts.train, parts.valid, parts.test):
        rows = part.ids.numpy()
        np.testing.assert_array_equal(part.y.numpy(), bunch.target[rows])
        close(part.x[:, 0], torch.from_numpy(bunch.images[rows] / 16))
        counts = torch.bincount(part.y, minlength=10)
        assert counts.max() - counts.min() <= 0.1 * counts.max()  # the digits themselves are 174 to 183 of each


def test_the_cut_is_always_the_same() -> None:
    assert torch.equal(load_digits_split().test.ids, load_digits_split().test.ids)
    assert load_digits_split().test.ids[:5].tolist() == Digits(size=16).read().test.ids[:5].tolist()


def test_size() -> None:
    assert Digits().read().train.x.shape == (1258, 1, 8, 8)
    assert Digits(size=32).read().test.x.shape == (269, 1, 32, 32)
    with pytest.raises(Mistake, match=r"--data\.size -1"):
        Digits(size=-1).read()


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_a_folder_with_test_files(tmp_path: Path, suffix: str) -> None:
    write(tmp_path, suffix)
    parts = Digits(path=str(tmp_path), valid=0.2).read()
    assert (len(parts.train.y), len(parts.valid.y), len(parts.test.y)) == (32, 8, 8)
    assert parts.labels == ("0", "1", "2", "3")
    assert parts.train.x.shape[1:] == (1, 6, 5)
    assert torch.bincount(parts.valid.y).tolist() == [2, 2, 2, 2]
    raw = np.random.default_rng(0).integers(0, 256, (40, 6, 5), np.uint8)
    close(parts.valid.x[:, 0], torch.from_numpy(raw[parts.valid.ids.numpy()] / 255).float())


def test_a_folder_without_test_files_is_cut_in_three(tmp_path: Path) -> None:
    parts = idx_folder(write(tmp_path, tx=None, ty=None), valid=0.2, test=0.3)
    assert (len(parts.train.y), len(parts.valid.y), len(parts.test.y)) == (20, 8, 12)


def test_plain_is_preferred_to_gz(tmp_path: Path) -> None:
    write(tmp_path, ".gz", x=np.zeros((40, 6, 5), np.uint8))
    write(tmp_path)
    assert idx_folder(tmp_path).train.x.max() > 0


def renamed(folder: Path) -> None:
    (folder / "second-train-images-idx3-ubyte").write_bytes(b"")


def truncated(folder: Path) -> None:
    path = folder / NAMES["tx"]
    path.write_bytes(path.read_bytes()[:-7])


@pytest.mark.parametrize(
    ("changes", "damage", "told"),
    [
        ({"x": None, "y": None}, None, "holds no train-images-idx3-ubyte"),
        ({"y": None}, None, "train-images-idx3-ubyte has no labels file beside it"),
        ({"tx": None}, None, "t10k-labels-idx1-ubyte has no images file beside it"),
        ({"y": np.zeros(39, np.uint8)}, None, "holds 40 images, but .*train-labels-idx1-ubyte 39 labels"),
        ({"y": np.zeros((40, 1), np.uint8)}, None, "train-labels.* holds 2 dimensions of uint8"),
        ({"y": np.zeros(40, np.float32)}, None, "train-labels.* holds 1 dimensions of float32"),
        ({"x": np.zeros((40, 30), np.uint8)}, None, "train-images.* holds 2 dimensions of uint8"),
        ({"x": np.zeros((40, 6, 5), np.int32)}, None, "train-images.* holds 3 dimensions of int32"),
        ({"x": np.zeros((0, 6, 5), np.uint8), "y": np.zeros(0, np.uint8)}, None, "holds no images"),
        ({"y": -np.ones(40, np.int8)}, None, "train-labels-idx1-ubyte: record 0 has label -1"),
        ({"ty": np.full(8, 7, np.uint8)}, None, r"t10k-labels-idx1-ubyte: record 0 has label 7, but the 4 classes"),
        ({"tx": np.zeros((8, 5, 5), np.uint8)}, None, "test images are 5×5, training images 6×5"),
        ({}, renamed, "holds several train images files"),
        ({}, truncated, "t10k-images-idx3-ubyte is truncated: 8×6×5 needs 240 bytes of values, it has 233"),
    ],
)
def test_mistakes(
    tmp_path: Path, changes: dict[str, np.ndarray | None], damage: Callable[[Path], None] | None, told: str
) -> None:
    write(tmp_path, **changes)
    if damage:
        damage(tmp_path)
    with pytest.raises(Mistake, match=told) as caught:
        idx_folder(tmp_path)
    assert "\n" not in str(caught.value)


def test_no_folder(tmp_path: Path) -> None:
    with pytest.raises(Mistake, match=r"--data\.path .*nowhere is not a folder"):
        idx_folder(tmp_path / "nowhere")
