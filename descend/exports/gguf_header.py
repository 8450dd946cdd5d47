"""The header of a GGUF file: what llama.cpp and its kin read.

    "GGUF" | version | tensors | entries | entries: key, type, value | tensors: name, sizes, type, place | bytes

Sizes stand in the order of ggml, the fastest first; here they are turned to rows first. Types of tensors and their
block sizes are those of the package `gguf`. The package's own reader takes a file that ends too early for numpy's
problem; this one names the tensor or the entry that is missing.
"""

from __future__ import annotations

from math import prod
from pathlib import Path
from typing import Any

from descend.errors import Mistake
from descend.exports.contents import Contents, Stored
from descend.exports.cursor import Cursor, mapped

EXTRA = "files of GGUF need the package gguf: pip install 'descend[gguf]'"
MAGIC, VERSIONS = b"GGUF", (2, 3)
FORMS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
TEXT, LIST = 8, 9
LONGEST = 2**20  # bytes of a name or a template
SHOWN = 8  # items of a list that are kept


def open_gguf(path: Path) -> Contents:
    """Tensors and entries of a GGUF file."""
    gguf = load_package()
    with mapped(path, "GGUF") as cursor:
        if cursor.take(4, "the mark GGUF") != MAGIC:
            raise Mistake(f"{path} is no GGUF file: it does not begin with {MAGIC.decode()}")
        version = cursor.unpack("<I", "the version")
        if version not in VERSIONS:
            raise Mistake(f"{path} is of version {version} of GGUF; known: {', '.join(map(str, VERSIONS))}")
        tensors, entries = cursor.unpack("<Q", "the count of tensors"), cursor.unpack("<Q", "the count of entries")
        metadata = dict(read_entry(cursor, f"entry {k + 1} of {entries:,}") for k in range(entries))
        found = [read_tensor(cursor, gguf, f"tensor {k + 1} of {tensors:,}") for k in range(tensors)]
        check_places(cursor, found, metadata.get("general.alignment", gguf.GGUF_DEFAULT_ALIGNMENT))
    return Contents(str(path), "gguf", tuple(tensor for tensor, _ in found), metadata)


def load_package() -> Any:
    """The package `gguf`, an extra."""
    try:
        import gguf
    except ImportError:
        raise Mistake(EXTRA) from None
    return gguf


def read_text(cursor: Cursor, what: str) -> str:
    length = cursor.unpack("<Q", f"the length of {what}")
    if length > LONGEST:
        raise Mistake(f"{cursor.path} is damaged: {what} has {length:,} bytes")
    return cursor.take(length, what).decode("utf-8")


def read_entry(cursor: Cursor, what: str) -> tuple[str, Any]:
    """A key and its value."""
    key = read_text(cursor, what)
    return key, read_value(cursor, cursor.unpack("<I", f"the type of {key}"), key)


def read_value(cursor: Cursor, kind: int, what: str) -> Any:
    """A number, a text, or a list: its first items, and how many there are."""
    if kind in FORMS:
        return cursor.unpack(FORMS[kind], what)
    if kind == TEXT:
        return read_text(cursor, what)
    if kind != LIST:
        raise Mistake(f"{cursor.path} is damaged: {what} has the type {kind}, which GGUF does not know")
    inner, count = cursor.unpack("<I", f"the type of {what}"), cursor.unpack("<Q", f"the length of {what}")
    if inner == LIST:
        raise Mistake(f"{cursor.path}: {what} is a list of lists, which is not read")
    items = []
    for k in range(count):
        item = read_value(cursor, inner, f"item {k + 1} of {count:,} of {what}")
        if k < SHOWN:
            items.append(item)
    return items if count <= SHOWN else {"items": count, "first": items}


def read_tensor(cursor: Cursor, gguf: Any, what: str) -> tuple[Stored, int]:
    """A tensor, and where its bytes begin."""
    name = read_text(cursor, what)
    dims = cursor.unpack("<I", f"the sizes of {name}")
    if dims > 8:
        raise Mistake(f"{cursor.path} is damaged: tensor {name!r} has {dims:,} dimensions")
    shape = tuple(cursor.unpack("<Q", f"the sizes of {name}") for _ in range(dims))[::-1]
    number, start = cursor.unpack("<I", f"the type of {name}"), cursor.unpack("<Q", f"the place of {name}")
    try:
        kind = gguf.GGMLQuantizationType(number)
    except ValueError:
        raise Mistake(f"{cursor.path}: tensor {name!r} has the type {number}, which gguf does not know") from None
    block, size = gguf.GGML_QUANT_SIZES[kind]
    return Stored(name, kind.name, shape, prod(shape) // block * size), start


def check_places(cursor: Cursor, found: list[tuple[Stored, int]], alignment: Any) -> None:
    """Every tensor ends within the file."""
    if not isinstance(alignment, int) or alignment <= 0:
        raise Mistake(f"{cursor.path} is damaged: general.alignment = {alignment}")
    begin = -(-cursor.at // alignment) * alignment
    size = len(cursor.data)
    for tensor, start in found:
        if (end := begin + start + tensor.bytes) > size:
            raise Mistake(
                f"{cursor.path} was cut short: tensor {tensor.name!r} ends at byte {end:,}, and the file has {size:,}; "
                f"copy the file again"
            )
