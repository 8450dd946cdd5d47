"""What an ONNX file says of itself: a protocol buffer, read field by field without its package.

    field: number · 8 + kind | value         kind 0 a number, 1 eight bytes, 2 a length and so many bytes, 5 four bytes
    model: producer 2, graph 7, opset 8, properties 14          graph: nodes 1, initial tensors 5, inputs 11, outputs 12

Weights are passed over, not read. Numbers of fields are those of onnx.proto; the tests hold them against the package.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from math import prod
from pathlib import Path
from typing import Any

from descend.errors import Mistake
from descend.exports.contents import Contents, Stored
from descend.exports.cursor import Cursor, mapped

TYPES = {  # TensorProto.DataType: our name, and bits
    1: ("F32", 32), 2: ("U8", 8), 3: ("I8", 8), 4: ("U16", 16), 5: ("I16", 16), 6: ("I32", 32), 7: ("I64", 64),
    8: ("TEXT", 0), 9: ("BOOL", 8), 10: ("F16", 16), 11: ("F64", 64), 12: ("U32", 32), 13: ("U64", 64), 14: ("C64", 64),
    15: ("C128", 128), 16: ("BF16", 16), 17: ("F8_E4M3", 8), 18: ("F8_E4M3FNUZ", 8), 19: ("F8_E5M2", 8),
    20: ("F8_E5M2FNUZ", 8), 21: ("U4", 4), 22: ("I4", 4), 23: ("F4", 4), 24: ("F8_E8M0", 8),
}  # fmt: skip
NUMBER, EIGHT, PART, FOUR = 0, 1, 2, 5
OUTSIDE = 1  # TensorProto.DataLocation.EXTERNAL


def open_onnx(path: Path) -> Contents:
    """Tensors, inputs, outputs, opset and nodes of an ONNX file."""
    said: dict[str, Any] = {}
    opset: dict[str, int] = {}
    graph: Cursor | None = None
    with mapped(path, "ONNX") as cursor:
        for number, value in read_fields(cursor, "the model"):
            if number in (2, 3, 6):
                said[{2: "producer", 3: "producer version", 6: "description"}[number]] = as_text(value)
            elif number == 7:
                graph = as_part(value)
            elif number == 8:
                fields = dict(read_fields(as_part(value), "the opset"))
                opset[as_text(fields[1]) if 1 in fields else ""] = fields.get(2, 0)
            elif number == 14:
                fields = dict(read_fields(as_part(value), "a property"))
                said[as_text(fields[1])] = as_text(fields[2]) if 2 in fields else ""
        if graph is None or not opset:
            lacks = "graph" if graph is None else "opset"
            raise Mistake(f"{path} is damaged or no ONNX file: it has no {lacks}; copy the file again")
        tensors, seen = read_graph(graph)
    return Contents(str(path), "onnx", tensors, {k: v for k, v in said.items() if v}, {**seen, "opset": opset})


def read_fields(cursor: Cursor, what: str) -> Iterator[tuple[int, Any]]:
    """(number, value) of a message: a whole number, or a part."""
    while cursor.left:
        key = read_number(cursor, f"a field of {what}")
        number, kind = key >> 3, key & 7
        if kind == NUMBER:
            yield number, read_number(cursor, f"field {number} of {what}")
        elif kind == PART:
            length = read_number(cursor, f"the length of field {number} of {what}")
            yield number, cursor.part(length, f"field {number} of {what}")
        elif kind in (EIGHT, FOUR):
            yield number, cursor.part(8 if kind == EIGHT else 4, f"field {number} of {what}")
        else:
            raise Mistake(f"{cursor.path} is damaged or no ONNX file: byte {cursor.at - 1:,} begins no field of {what}")


def read_number(cursor: Cursor, what: str) -> int:
    """Seven bits a byte, the lowest first; the highest bit says that more follow."""
    found = 0
    for shift in range(0, 70, 7):
        byte = cursor.take(1, what)[0]
        found |= (byte & 127) << shift
        if byte < 128:
            return found
    raise Mistake(f"{cursor.path} is damaged or no ONNX file: {what} is a number of more than ten bytes")


def as_part(value: Any) -> Cursor:
    if not isinstance(value, Cursor):
        raise Mistake("a number stands in an ONNX file where a part should be; copy the file again")
    return value


def as_text(value: Any) -> str:
    part = as_part(value)
    return part.take(part.left, "a text").decode("utf-8")


def read_graph(cursor: Cursor) -> tuple[tuple[Stored, ...], dict[str, Any]]:
    """The initial tensors; and the inputs, the outputs and the nodes."""
    tensors: list[Stored] = []
    ends: dict[int, dict[str, list[Any]]] = {11: {}, 12: {}}
    nodes: Counter[str] = Counter()
    for number, value in read_fields(cursor, "the graph"):
        if number == 1:
            fields = dict(read_fields(as_part(value), "a node"))
            nodes[as_text(fields[4]) if 4 in fields else "?"] += 1
        elif number == 5:
            tensors.append(read_tensor(as_part(value)))
        elif number in ends:
            name, shape = read_end(as_part(value))
            ends[number][name] = shape
    names = {tensor.name for tensor in tensors}
    inputs = {name: shape for name, shape in ends[11].items() if name not in names}
    counts = dict(nodes.most_common())
    return tuple(tensors), {"inputs": inputs, "outputs": ends[12], "nodes": sum(counts.values()), "operations": counts}


def read_tensor(cursor: Cursor) -> Stored:
    """Name, type, shape and bytes of an initial tensor; its numbers are passed over."""
    shape: list[int] = []
    name, kind, outside, raw = "", 0, False, None
    for number, value in read_fields(cursor, "a tensor"):
        if number == 1:
            shape += read_packed(value)
        elif number == 2:
            kind = value
        elif number == 8:
            name = as_text(value)
        elif number == 9:
            raw = as_part(value).left
        elif number == 14:
            outside = value == OUTSIDE
    dtype, bits = TYPES.get(kind, (f"type {kind}", 0))
    size = -(-prod(shape) * bits // 8)
    if raw is not None and not outside and bits and raw != size:
        raise Mistake(
            f"{cursor.path} is damaged: tensor {name!r} of {dtype} {tuple(shape)} has {raw:,} bytes, not {size:,}"
        )
    return Stored(name, dtype, tuple(shape), size)


def read_packed(value: Any) -> list[int]:
    """Sizes, one a field or all in one."""
    if not isinstance(value, Cursor):
        return [value]
    found = []
    while value.left:
        found.append(read_number(value, "a size"))
    return found


def read_end(cursor: Cursor) -> tuple[str, list[Any]]:
    """An input or output: its name, and its type with its sizes (numbers, or names of those that vary)."""
    name, described = "", ["?"]
    for number, value in read_fields(cursor, "an input or output"):
        if number == 1:
            name = as_text(value)
        elif number == 2:
            inner = dict(read_fields(as_part(value), "a type"))
            described = read_type(as_part(inner[1])) if 1 in inner else ["no tensor"]
    return name, described


def read_type(cursor: Cursor) -> list[Any]:
    """[F32, "batch", 10]"""
    kind, sizes = 0, []
    for number, value in read_fields(cursor, "a type"):
        if number == 1:
            kind = value
        elif number == 2:
            for _, dim in read_fields(as_part(value), "a shape"):
                fields = dict(read_fields(as_part(dim), "a size"))
                sizes.append(fields[1] if 1 in fields else as_text(fields[2]) if 2 in fields else "?")
    return [TYPES.get(kind, (f"type {kind}", 0))[0], *sizes]
