"""Pickles as Python 2, numpy and scipy wrote them: instruction by instruction, to read back."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

STOP = b"."


def name(module: str, what: str) -> bytes:
    return b"c" + f"{module}\n{what}\n".encode()


def write(value: Any) -> bytes:
    """A whole pickle of protocol 2."""
    return b"\x80\x02" + encode(value) + STOP


def encode(value: Any) -> bytes:
    if value is None:
        return b"N"
    if isinstance(value, bool):
        return b"\x88" if value else b"\x89"
    if isinstance(value, int):
        if 0 <= value < 256:
            return b"K" + struct.pack("<B", value)
        return b"M" + struct.pack("<H", value) if 0 <= value < 65536 else b"J" + struct.pack("<i", value)
    if isinstance(value, str | bytes):
        content = value.encode("latin1") if isinstance(value, str) else value
        return (
            b"U" + bytes([len(content)]) + content
            if len(content) < 256
            else b"T" + struct.pack("<i", len(content)) + content
        )
    if isinstance(value, tuple):
        inner = b"".join(map(encode, value))
        return {0: b")", 1: inner + b"\x85", 2: inner + b"\x86", 3: inner + b"\x87"}.get(
            len(value), b"(" + inner + b"t"
        )
    if isinstance(value, list):
        return b"]" + (
            b""
            if not value
            else encode(value[0]) + b"a"
            if len(value) == 1
            else b"(" + b"".join(map(encode, value)) + b"e"
        )
    if isinstance(value, dict):
        items = b"".join(encode(k) + encode(v) for k, v in value.items())
        return name("collections", "defaultdict") + name("__builtin__", "list") + b"\x85R(" + items + b"u"
    if scipy.sparse.issparse(value):
        state = {
            "format": "csr",
            "_shape": tuple(map(int, value.shape)),
            "indptr": value.indptr,
            "indices": value.indices,
        }
        items = b"".join(encode(k) + encode(v) for k, v in {**state, "data": value.data}.items())
        return name("scipy.sparse.csr", "csr_matrix") + b")\x81}(" + items + b"ub"
    return encode_array(value)


def encode_array(value: np.ndarray) -> bytes:
    code = value.dtype.str
    kind = (
        name("numpy", "dtype")
        + encode((code[1:], 0, 1))
        + b"R"
        + encode((3, code[0], None, None, None, -1, -1, 0))
        + b"b"
    )
    start = (
        name("numpy.core.multiarray", "_reconstruct") + name("numpy", "ndarray") + encode((0,)) + encode("b") + b"\x87R"
    )
    columns_first = value.flags.f_contiguous and not value.flags.c_contiguous
    content = value.tobytes("F" if columns_first else "C")
    state = encode(1) + encode(tuple(value.shape)) + kind + encode(columns_first) + encode(content)
    return start + b"(" + state + b"tb"


def write_set(folder: Path, gaps: bool = False) -> None:
    """A citation graph of 10 papers: 2 teach, 4 more are known, 4 are tested (one of them missing with `gaps`)."""
    random = np.random.default_rng(0)
    x = (random.random((10, 5)) < 0.4).astype(np.float32)
    x[:, 0] = 1
    y = np.eye(2, dtype=np.int32)[np.arange(10) % 2]
    index = [9, 6, 8] if gaps else [9, 6, 8, 7]
    graph = {i: [(i + 1) % 10, (i - 1) % 10] for i in range(10)}
    if gaps:
        graph = {i: [j for j in (i - 1, i + 1) if 0 <= j < 10 and j != 7] for i in range(10) if i != 7}
    parts: dict[str, Any] = {"x": x[:2], "allx": x[:6], "tx": x[index]}
    found = {part: scipy.sparse.csr_matrix(rows) for part, rows in parts.items()}
    found |= {"y": y[:2], "ally": y[:6], "ty": y[index], "graph": graph}
    for part, value in found.items():
        (folder / f"ind.tiny.{part}").write_bytes(write(value))
    (folder / "ind.tiny.test.index").write_text("".join(f"{i}\n" for i in index))
