"""IDX files: written and read, plain and gzipped, and every kind of damage named."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

import numpy as np
import pytest

from descend.data.images.idx import read_idx, write_idx
from descend.errors import Mistake


def test_reads_a_file_made_by_hand(tmp_path: Path) -> None:
    """The layout of the MNIST page: magic 0x00000803, sizes, bytes."""
    (tmp_path / "x").write_bytes(bytes.fromhex("00000803 00000002 00000001 00000003") + bytes([1, 2, 3, 250, 5, 6]))
    assert read_idx(tmp_path / "x").tolist() == [[[1, 2, 3]], [[250, 5, 6]]]
    (tmp_path / "y").write_bytes(bytes.fromhex("00000b01 00000002") + struct.pack(">hh", -2, 300))
    assert read_idx(tmp_path / "y").tolist() == [-2, 300]


@pytest.mark.parametrize("dtype", ["u1", "i1", "i2", "i4", "f4", "f8"])
@pytest.mark.parametrize("name", ["a-idx2", "a-idx2.gz"])
def test_round_trip(tmp_path: Path, dtype: str, name: str) -> None:
    array = np.random.default_rng(0).integers(0, 100, (3, 5)).astype(dtype)
    write_idx(tmp_path / name, array)
    again = read_idx(tmp_path / name)
    assert again.dtype == array.dtype
    assert again.dtype.isnative
    np.testing.assert_array_equal(again, array)
    assert ((tmp_path / name).read_bytes()[:2] == b"\x1f\x8b") == name.endswith(".gz")


def test_gzip_is_seen_by_content(tmp_path: Path) -> None:
    write_idx(tmp_path / "a.gz", np.arange(4, dtype=np.uint8))
    (tmp_path / "a.gz").rename(tmp_path / "a")
    assert read_idx(tmp_path / "a").tolist() == [0, 1, 2, 3]


GOOD = bytes.fromhex("00000801 00000004") + b"abcd"


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"", "is not an IDX file: it starts with nothing"),
        (b"PNG!", "is not an IDX file: it starts with 50 4e 47 21"),
        (bytes.fromhex("00000701 00000001") + b"a", "is not an IDX file"),
        (bytes.fromhex("00000803 0000"), "ends inside its header"),
        (GOOD[:-1], "is truncated: 4 needs 4 bytes of values, it has 3"),
        (GOOD + b"e", "is longer than its header says: 4 needs 4 bytes of values, it has 5"),
        (gzip.compress(GOOD, mtime=0)[:-9], "is not a complete gzip file"),
        (gzip.compress(GOOD, mtime=0)[:10] + b"\xff" * 20, "is not a complete gzip file"),
    ],
)
def test_damage_is_named(tmp_path: Path, data: bytes, told: str) -> None:
    path = tmp_path / "train-images-idx3-ubyte"
    path.write_bytes(data)
    with pytest.raises(Mistake, match=told) as caught:
        read_idx(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_file_and_a_folder_are_named(tmp_path: Path) -> None:
    with pytest.raises(Mistake, match="nowhere: no such file or folder"):
        read_idx(tmp_path / "nowhere")
    with pytest.raises(Mistake, match="is a folder, not a file"):
        read_idx(tmp_path)


def test_what_idx_cannot_hold_is_refused(tmp_path: Path) -> None:
    for array in (np.zeros(3, np.int64), np.zeros((), np.uint8), np.zeros(3, bool)):
        with pytest.raises(Mistake, match="IDX cannot hold"):
            write_idx(tmp_path / "a", array)
