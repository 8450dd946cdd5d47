"""Bytes of a mapped file, read from front to back: a file that ends too early is named, with what is missing."""

from __future__ import annotations

import mmap
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from descend.errors import Mistake
from descend.files import explain_error


@dataclass
class Cursor:
    """A place in a file, and where the part that is being read ends."""

    path: Path
    data: mmap.mmap
    at: int
    end: int

    def check(self, count: int, what: str) -> None:
        """Refuse to read beyond the end."""
        if count < 0 or count > self.end - self.at:
            size, there = len(self.data), self.end - self.at
            raise Mistake(
                f"{self.path} is damaged or was cut short: {what} at byte {self.at:,} of {size:,} has {count:,} bytes, "
                f"and {there:,} are there; copy the file again"
            )

    def take(self, count: int, what: str) -> bytes:
        """The next bytes."""
        self.check(count, what)
        self.at += count
        return self.data[self.at - count : self.at]

    def skip(self, count: int, what: str) -> None:
        """Past the next bytes, which must be there."""
        self.check(count, what)
        self.at += count

    def unpack(self, form: str, what: str) -> Any:
        """A number, as struct names it."""
        return struct.unpack(form, self.take(struct.calcsize(form), what))[0]

    def part(self, count: int, what: str) -> Cursor:
        """The next bytes as a part of its own; this cursor goes past it."""
        self.skip(count, what)
        return Cursor(self.path, self.data, self.at - count, self.at)

    @property
    def left(self) -> int:
        return self.end - self.at


@contextmanager
def mapped(path: Path, kind: str) -> Iterator[Cursor]:
    """The bytes of a file; nothing is read until it is asked for."""
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            if not size:
                raise Mistake(f"{path} is empty, and no {kind} file; copy the file again")
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                yield Cursor(path, data, 0, size)
    except OSError as error:
        raise Mistake(f"{path} cannot be read: {explain_error(error)}") from None
    except UnicodeDecodeError:
        raise Mistake(f"{path} is damaged or no {kind} file: a name in it is not a text") from None
