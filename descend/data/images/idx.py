"""IDX, the format of the MNIST files, plain or gzipped: a header, then the values in C order, big-endian.

2 bytes zero | 1 byte type | 1 byte number of dimensions k | k sizes, 4 bytes each | the values
"""

from __future__ import annotations

import gzip
import math
import struct
import zlib
from pathlib import Path

import numpy as np

from descend.errors import Mistake

TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}


def read_idx(path: str | Path) -> np.ndarray:
    """The array in a file, in this machine's byte order. A wrong header or a short file is a mistake that names it."""
    path = Path(path)
    data = _bytes(path)
    if len(data) < 4 or data[:2] != b"\0\0" or data[2] not in TYPES or data[3] == 0:
        raise Mistake(f"{path} is not an IDX file: it starts with {data[:4].hex(' ') or 'nothing'}; replace it")
    dtype, start = np.dtype(TYPES[data[2]]), 4 + 4 * data[3]
    if len(data) < start:
        raise Mistake(f"{path} ends inside its header; it is truncated, download it again")
    shape = struct.unpack(f">{data[3]}I", data[4:start])
    expected, found = math.prod(shape) * dtype.itemsize, len(data) - start
    if found != expected:
        told = "truncated" if found < expected else "longer than its header says"
        raise Mistake(
            f"{path} is {told}: {'×'.join(map(str, shape))} needs {expected} bytes of values, it has {found}; "
            f"download it again"
        )
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


def _bytes(path: Path) -> bytes:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise Mistake(f"{path} cannot be read: {error.strerror}") from None
    if data[:2] != b"\x1f\x8b":  # gzip by its content, since downloads lose or keep the .gz at random
        return data
    try:
        return gzip.decompress(data)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise Mistake(f"{path} is a damaged gzip file ({error}); download it again") from None
