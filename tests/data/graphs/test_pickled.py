"""Old pickles: numbers and arrays come out as Python reads them; whatever else is in a file is named and not run."""

from __future__ import annotations

import os
import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse

from descend.data.graphs.pickled import read_pickle
from descend.errors import Mistake
from tests.data.graphs.python2 import name, write

VALUES: list[Any] = [
    np.arange(12, dtype=np.int32).reshape(3, 4),
    np.asfortranarray(np.arange(12.0).reshape(3, 4)),
    np.arange(3, dtype=">i4"),
    np.zeros((0, 3), np.float32),
    {0: [1, 300, 70000], 1: [], 2: [5]},
    [1, -5, None, True, b"abc"],
    scipy.sparse.csr_matrix(np.array([[0, 2.5, 0], [1, 0, 3]], np.float32)),
]


def read(tmp_path: Path, content: bytes) -> Any:
    path = tmp_path / "ind.x"
    path.write_bytes(content)
    return read_pickle(path)


@pytest.mark.parametrize("value", VALUES, ids=lambda v: type(v).__name__)
def test_values_are_those_that_pickle_reads(tmp_path: Path, value: Any) -> None:
    content = write(value)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = pickle.loads(content, encoding="bytes" if isinstance(value, list) else "latin1")
    ours = read(tmp_path, content)
    if scipy.sparse.issparse(value):
        ours, theirs = ours.toarray(), value.toarray()
    if isinstance(ours, np.ndarray):
        assert ours.dtype == theirs.dtype.newbyteorder("=")
        assert np.array_equal(ours, theirs)
        assert np.array_equal(ours, value.toarray() if scipy.sparse.issparse(value) else value)
    else:
        assert ours == theirs == value


def test_nothing_is_executed(tmp_path: Path) -> None:
    """A file that would run a command, in the three ways that a pickle can."""
    mark = tmp_path / "was here"

    class Evil:
        def __reduce__(self) -> Any:
            return os.system, (f"touch '{mark}'",)

    for protocol in (0, 1, 2, 3, 4):
        with pytest.raises(Mistake, match=r"ind\.x, byte \d+"):
            read(tmp_path, pickle.dumps(Evil(), protocol))
    call = b"\x80\x02" + name("posix", "system") + b"U\x05touch\x85R."
    with pytest.raises(Mistake, match="byte 2: the name 'posix system' is none"):
        read(tmp_path, call)
    for known in (("numpy", "ndarray"), ("__builtin__", "list"), ("collections", "defaultdict")):
        with pytest.raises(Mistake, match="not made"):
            read(tmp_path, b"\x80\x02" + name(*known) + b"U\x05touch\x85R.")
    assert not mark.exists()


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "ends too early"),
        (b"\x80\x03N.", "protocol 3"),
        (b"\x80\x02I1\n.", "instruction 0x49"),
        (b"\x80\x02]K\x01", "ends too early"),
        (b"\x80\x02]K\x01K\x02.", "goes on after its end"),
        (b"\x80\x02].]", "goes on after its end"),
        (b"\x80\x02K\x05.", "neither an array"),
        (b"\x80\x02h\x07.", "recalls value 7"),
        (b"\x80\x02(.", "a value is missing"),
        (b"\x80\x02t.", "a mark is missing"),
        (b"\x80\x02K\x01K\x02a.", "without a list"),
        (b"\x80\x02}K\x01K\x02K\x03t", "a mark is missing"),
        (b"\x80\x02}]K\x02s.", "neither a number nor a text"),
        (b"\x80\x02K\x01K\x02b.", "without an object"),
        (b"\x80\x02T\xff\xff\xff\xff.", "ends too early"),
        (b"\x80\x02cnumpy", "name without an end"),
        (write(np.arange(3))[:-10] + b".", "byte"),
        (write(np.arange(3, dtype=np.int32)).replace(b"K\x03\x85", b"K\x04\x85"), "does not have 12 bytes"),
        (write(np.arange(3, dtype=np.int32)).replace(b"U\x02i4", b"U\x02O8"), "type 'O8'"),
    ],
)
def test_damage_is_named_by_its_byte(tmp_path: Path, content: bytes, why: str) -> None:
    with pytest.raises(Mistake, match=why) as found:
        read(tmp_path, content)
    assert "ind.x, byte" in str(found.value)


def test_a_matrix_must_lie_within_its_sides(tmp_path: Path) -> None:
    matrix = scipy.sparse.csr_matrix(np.eye(3, dtype=np.float32))
    for change in ({"indices": np.array([0, 1, 9], np.int32)}, {"indptr": np.array([0, 2, 1, 3], np.int32)}):
        broken = matrix.copy()
        for part, value in change.items():
            setattr(broken, part, value)
        with pytest.raises(Mistake, match="outside the 3 × 3 matrix"):
            read(tmp_path, write(broken))


def test_every_cut_of_a_file_is_a_mistake(tmp_path: Path) -> None:
    content = write(VALUES[-1])
    for end in range(0, len(content), 7):
        with pytest.raises(Mistake):
            read(tmp_path, content[:end])
