"""IDX, the format of the MNIST files, plain or gzipped: a header, then the values in C order, big-endian.

2 bytes zero | 1 byte type | 1 byte number of dimensions k | k sizes, 4 bytes each | the values
"""

from __future__ import annotations

import gzip
import math
import struct
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from descend.data.reading import BLOCK, GZIP, check_file, show, unpack
from descend.errors import Mistake
from descend.files import explain_error

TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
MOST_DIMENSIONS = 32


def read_idx(path: str | Path) -> np.ndarray:
    """The array in a file, in this machine's byte order. A wrong header or a short file is a mistake that names it."""
    path = Path(path)
    size = check_file(path).st_size
    try:
        with path.open("rb") as file:
            packed = file.read(2) == GZIP  # by its content, since downloads lose or keep the .gz at random
            file.seek(0)
            return _parse(path, unpack(path, file, size) if packed else iter(lambda: file.read(BLOCK), b""))
    except OSError as error:
        raise Mistake(f"{show(path)} cannot be read: {explain_error(error)}") from None


def _parse(path: Path, blocks: Iterator[bytes]) -> np.ndarray:
    """The array; no more is unpacked than the header asks for, and one block."""
    data = bytearray(next(blocks, b""))
    if len(data) < 4 or data[:2] != b"\0\0" or data[2] not in TYPES or not 0 < data[3] <= MOST_DIMENSIONS:
        raise Mistake(f"{show(path)} is not an IDX file: it starts with {data[:4].hex(' ') or 'nothing'}; replace it")
    dtype, start = np.dtype(TYPES[data[2]]), 4 + 4 * data[3]
    if len(data) < start:
        raise Mistake(f"{show(path)} ends inside its header; it is truncated, download it again")
    shape = struct.unpack(f">{data[3]}I", data[4:start])
    expected = math.prod(shape) * dtype.itemsize
    for block in blocks:
        data += block
        if len(data) - start > expected:
            break
    found = len(data) - start
    if found != expected:
        told = "truncated" if found < expected else "longer than its header says"
        raise Mistake(
            f"{show(path)} is {told}: {'×'.join(map(str, shape))} needs {expected} bytes of values, it has {found}; "
            f"download it again"
        )
    if not expected:
        return np.empty((0,) * len(shape), dtype.newbyteorder("="))  # whatever the other sizes are
    return np.frombuffer(data, dtype, offset=start).reshape(shape).astype(dtype.newbyteorder("="))


def write_idx(path: str | Path, array: np.ndarray) -> None:
    """Write an array as IDX, gzipped when the name ends in .gz."""
    path = Path(path)
    kind = next((k for k, t in TYPES.items() if np.dtype(t) == array.dtype.newbyteorder(">")), None)
    if kind is None or array.ndim == 0:
        raise Mistake(
            f"{path}: IDX cannot hold {array.ndim} dimensions of {array.dtype}; use uint8 for images and labels"
        )
    header = struct.pack(f">BBBB{array.ndim}I", 0, 0, kind, array.ndim, *array.shape)
    data = header + array.astype(TYPES[kind]).tobytes()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
