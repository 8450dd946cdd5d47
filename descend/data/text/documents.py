"""Documents of a text file, a JSONL file or a folder of them, piece by piece: nothing is ever held whole.

    .txt, .md, any other file     one document
    .jsonl                        one document per line, {"text": "..."}
    .gz                           either of them, compressed
    a folder                      its .txt, .md, .jsonl and .gz files, also below it, in the order of their names

A piece is at most a megabyte and ends at a line's end where it can. Whatever cannot be read is named by file and line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from descend.data.reading import check_file, is_folder, list_files, parse_object, show, unpack
from descend.errors import Mistake
from descend.files import explain_error

CHUNK = 2**20
LONGEST = 2**28  # bytes of a line in a .jsonl file
ENDINGS = (".txt", ".md", ".jsonl", ".gz")
MARK = b"\xef\xbb\xbf"  # of byte order, which UTF-8 does not need


class Piece(NamedTuple):
    """A part of a document; `last` when the document ends with it."""

    text: str
    last: bool


def sources(path: str | Path) -> list[Path]:
    """The files of a path, sorted by name."""
    path = Path(path)
    if not is_folder(path):
        check_file(path)
        return [path]
    found = [file for file in list_files(path, ENDINGS) if file.suffix.lower() in ENDINGS]
    if not found:
        raise Mistake(f"--data.path {path}: no text in this folder; it needs files that end in {', '.join(ENDINGS)}")
    return found


def many(path: str | Path) -> bool:
    """Whether a path may hold several documents, or must be unpacked."""
    return is_folder(path) or Path(path).suffix in (".jsonl", ".gz")


def pieces(path: Path) -> Iterator[Piece]:
    """The documents of one file."""
    read = records if holds_records(path) else passages
    return read(path, blocks(path))


def holds_records(path: Path) -> bool:
    """Whether it is a .jsonl file, compressed or not."""
    return path.name.removesuffix(".gz").endswith(".jsonl")


def blocks(path: Path) -> Iterator[bytes]:
    """The bytes of a file, unpacked, without a byte-order mark."""
    size = check_file(path).st_size
    try:
        with path.open("rb") as file:
            found = unpack(path, file, size) if path.suffix == ".gz" else iter(lambda: file.read(CHUNK), b"")
            first = next(found, b"")
            yield first.removeprefix(MARK)
            yield from found
    except OSError as error:
        raise Mistake(f"{show(path)} cannot be read: {explain_error(error)}") from None


def passages(path: Path, found: Iterable[bytes]) -> Iterator[Piece]:
    """A plain text as one document."""
    rest, line = b"", 1
    for block in found:
        block = rest + block
        cut = block.rfind(b"\n") + 1 or whole_characters(block)
        block, rest = block[:cut], block[cut:]
        if block:
            yield Piece(decode_block(path, block, line), False)
        line += block.count(b"\n")
    yield Piece(decode_block(path, rest, line), True)


def records(path: Path, found: Iterable[bytes]) -> Iterator[Piece]:
    """One document a line; empty lines are passed over."""
    for _, record in objects(path, found):
        yield Piece(record["text"], True)


def objects(path: Path, found: Iterable[bytes]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Place and object of each line that is not empty; all have a "text"."""
    for number, line in enumerate(lines(path, found), 1):
        if not line.strip():
            continue
        where = f"{show(path)}, line {number}"
        record = parse_object(decode_block(path, line, number), where)
        if not isinstance(record.get("text"), str):
            raise Mistake(f'{where}: the record has no "text"; each line is {{"text": "..."}}')
        yield where, record


def lines(path: Path, found: Iterable[bytes]) -> Iterator[bytes]:
    """The lines of blocks that may end anywhere."""
    waiting: list[bytes] = []
    size = 0
    for block in found:
        first, *more = block.split(b"\n")
        waiting.append(first)
        size += len(first)
        if size > LONGEST:
            raise Mistake(f"{show(path)}: a line has more than {LONGEST:,} bytes; each line is one record")
        if more:
            yield b"".join(waiting)
            yield from more[:-1]
            waiting, size = [more[-1]], len(more[-1])
    yield b"".join(waiting)


def decode_block(path: Path, block: bytes, line: int) -> str:
    """UTF-8, or a mistake that names the line; `line` is that of the first byte."""
    try:
        return block.decode("utf-8")
    except UnicodeDecodeError as error:
        number = line + block.count(b"\n", 0, error.start)
        wrong = f"byte 0x{block[error.start]:02x} is not UTF-8"
        raise Mistake(f"{show(path)}, line {number}: {wrong}; convert the file first (iconv -t utf-8)") from None


def whole_characters(block: bytes) -> int:
    """Where the last whole character of a block ends; an unfinished one has at most three bytes."""
    for back in range(1, min(4, len(block)) + 1):
        byte = block[-back]
        if byte & 0xC0 != 0x80:  # the first byte of a character
            size = 1 if byte < 0x80 else 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return len(block) if size <= back else len(block) - back
    return len(block)
