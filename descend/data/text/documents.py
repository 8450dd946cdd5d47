"""Documents of a text file, a JSONL file or a folder of them, piece by piece: nothing is ever held whole.

    .txt, .md, any other file     one document
    .jsonl                        one document per line, {"text": "..."}
    .gz                           either of them, compressed
    a folder                      its .txt, .md, .jsonl and .gz files, also below it, in the order of their names

A piece is at most a megabyte and ends at a line's end where it can. Whatever cannot be read is named by file and line.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, NamedTuple, cast

from descend.errors import Mistake

CHUNK = 2**20
ENDINGS = (".txt", ".md", ".jsonl", ".gz")


class Piece(NamedTuple):
    """A part of a document; `last` when the document ends with it."""

    text: str
    last: bool


def sources(path: str | Path) -> list[Path]:
    """The files of a path, sorted by name."""
    path = Path(path)
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise Mistake(f"--data.path {path}: no such file or folder")
    found = sorted(p for p in path.rglob("*") if p.is_file() and p.suffix in ENDINGS)
    if not found:
        raise Mistake(f"--data.path {path}: no text in this folder; it needs files that end in {', '.join(ENDINGS)}")
    return found


def many(path: str | Path) -> bool:
    """Whether a path may hold several documents, or must be unpacked."""
    return Path(path).is_dir() or Path(path).suffix in (".jsonl", ".gz")


def pieces(path: Path) -> Iterator[Piece]:
    """The documents of one file."""
    read = records if path.name.removesuffix(".gz").endswith(".jsonl") else passages
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            yield from read(path, cast("IO[bytes]", file))
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise Mistake(f"{path} is not a complete gzip file ({error}); copy it again") from None


def passages(path: Path, file: IO[bytes]) -> Iterator[Piece]:
    """A plain text as one document."""
    rest, line = b"", 1
    while block := file.read(CHUNK):
        block = rest + block
        cut = block.rfind(b"\n") + 1 or whole_characters(block)
        block, rest = block[:cut], block[cut:]
        if block:
            yield Piece(decode_block(path, block, line), False)
        line += block.count(b"\n")
    yield Piece(decode_block(path, rest, line), True)


def records(path: Path, file: IO[bytes]) -> Iterator[Piece]:
    """One document a line; empty lines are passed over."""
    for number, line in enumerate(file, 1):
        if not line.strip():
            continue
        text = decode_block(path, line, number)
        try:
            record = json.loads(text)
        except json.JSONDecodeError as error:
            raise Mistake(f"{path}:{number}: not JSON ({error.msg}); each line is one record") from None
        if not isinstance(record, dict) or not isinstance(record.get("text"), str):
            raise Mistake(f'{path}:{number}: the record has no "text"; each line is {{"text": "..."}}')
        yield Piece(record["text"], True)


def decode_block(path: Path, block: bytes, line: int) -> str:
    """UTF-8, or a mistake that names the line; `line` is that of the first byte."""
    try:
        return block.decode("utf-8")
    except UnicodeDecodeError as error:
        number = line + block.count(b"\n", 0, error.start)
        byte = block[error.start]
        raise Mistake(
            f"{path}:{number}: byte 0x{byte:02x} is not UTF-8; convert the file first (iconv -t utf-8)"
        ) from None


def whole_characters(block: bytes) -> int:
    """Where the last whole character of a block ends; an unfinished one has at most three bytes."""
    for back in range(1, min(4, len(block)) + 1):
        byte = block[-back]
        if byte & 0xC0 != 0x80:  # the first byte of a character
            size = 1 if byte < 0x80 else 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return len(block) if size <= back else len(block) - back
    return len(block)
