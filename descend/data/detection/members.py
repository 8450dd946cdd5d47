"""The members of a large JSON file, one at a time: what is not kept is never held as Python's objects.

    {"images": [a, b], "info": c}  ->  ("images", 0, a), ("images", 1, b), ("info", −1, c)
    [a, b]                         ->  ("", 0, a), ("", 1, b)

A whole file of annotations as objects takes ten times its size in memory; so only its text is held, of at most `MOST`
bytes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from descend.data.reading import decode, show
from descend.errors import Mistake
from descend.files import exceeds_depth, read_bytes

MOST = 2**30  # bytes of a file
DIGITS = 20  # of a whole number
SPACE = " \t\r\n"


class Member(NamedTuple):
    """A member of the file's object or, with its place, of one of its lists."""

    key: str
    place: int
    value: Any


def read_members(path: Path) -> Iterator[Member]:
    """All members of a JSON file; a list is given item by item."""
    try:
        text = decode(read_bytes(path, MOST), path)
    except Mistake as mistake:
        more = "; split the set into several files" if "at most" in str(mistake) else ""
        raise Mistake(f"{mistake}{more}") from None
    reader = Reader(text, show(path))
    try:
        yield from reader.read()
    except RecursionError:
        raise Mistake(f"{show(path)} is not valid: lists or objects are nested too deeply") from None
    except (ValueError, IndexError) as error:
        if isinstance(error, json.JSONDecodeError):
            raise Mistake(f"{show(path)} is not valid JSON: {error}") from None
        line = text.count("\n", 0, reader.at) + 1
        said = error if isinstance(error, ValueError) else "it ends too early"
        raise Mistake(f"{show(path)}, line {line} is not valid JSON: {said}; write the file again") from None


class Reader:
    """A place in a text of JSON."""

    def __init__(self, text: str, where: str):
        self.text, self.where, self.at = text, where, 0
        self.scan = json.JSONDecoder(parse_int=parse_whole).raw_decode

    def read(self) -> Iterator[Member]:
        first = self.look()
        if first == "[":
            yield from self.items("")
        elif first == "{":
            yield from self.members()
        else:
            raise ValueError("neither an object nor a list")
        if self.rest():
            raise ValueError("something follows after its end")

    def members(self) -> Iterator[Member]:
        self.at += 1
        while self.look() != "}":
            key = self.value()
            if not isinstance(key, str):
                raise ValueError("a name is not a text")
            self.expect(":")
            if self.look() == "[":
                yield from self.items(key)
            else:
                yield Member(key, -1, self.value())
            self.separate("}")
        self.at += 1

    def items(self, key: str) -> Iterator[Member]:
        self.at += 1
        place = 0
        while self.look() != "]":
            yield Member(key, place, self.value())
            place += 1
            self.separate("]")
        self.at += 1

    def look(self) -> str:
        """The next sign that is no space."""
        while self.text[self.at] in SPACE:
            self.at += 1
        return self.text[self.at]

    def rest(self) -> str:
        return self.text[self.at :].strip(SPACE) if len(self.text) - self.at < 2**16 else "much"

    def expect(self, sign: str) -> None:
        if self.look() != sign:
            raise ValueError(f"{self.text[self.at]!r} where {sign!r} should be")
        self.at += 1

    def separate(self, end: str) -> None:
        """Past a comma, after which something must follow, or up to the end."""
        if self.look() == end:
            return
        self.expect(",")
        if self.look() == end:
            raise ValueError("a comma before the end")

    def value(self) -> Any:
        self.look()
        value, self.at = self.scan(self.text, self.at)
        if exceeds_depth(value):
            raise ValueError("lists or objects are nested too deeply")
        return value


def parse_whole(digits: str) -> int:
    if len(digits) > DIGITS:
        raise ValueError(f"a number of {len(digits):,} digits")
    return int(digits)
