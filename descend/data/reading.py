"""The user's data files, read with bounds: what cannot be read is a mistake that names the file, and the line.

    read_text(path)        UTF-8 with or without a byte-order mark, plain or gzipped; every line end is \\n
    read_objects(path)     the objects of a .jsonl file       read_rows(path, ..)   the fields of a .csv or .tsv file
    list_files(folder)     all files below it; a link to nowhere, a pipe or a locked folder is named, never passed over
    digest(path)           of a file's bytes, to know it again; as fast as the disk

A gzip file may hold `RATIO` times its size once it holds more than `SMALL`: text is packed 3 to 20 times, a bomb 1,000
times. File names of unknown encoding are shown with their bytes as \\xe9.
"""

from __future__ import annotations

import csv
import gzip
import io
import os
import stat
import sys
import zlib
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import IO, Any, Literal

import xxhash

from descend import files
from descend.errors import Mistake

MOST = 2**36  # bytes of a file
SMALL, RATIO = 2**26, 100
BLOCK = 2**20
GZIP = b"\x1f\x8b"
LONGEST_FIELD = 2**31 - 1


def read_bytes(path: str | Path) -> bytes:
    """A file, unpacked if it is gzipped."""
    check_file(path)
    data = files.read_bytes(Path(path), MOST)
    if not data.startswith(GZIP):
        return data
    return b"".join(unpack(Path(path), io.BytesIO(data), len(data)))


def unpack(path: Path, packed: IO[bytes], size: int) -> Iterator[bytes]:
    """The content of a gzip file of `size` bytes, block by block."""
    found = 0
    try:
        with gzip.GzipFile(fileobj=packed) as file:
            while block := file.read(BLOCK):
                found += len(block)
                if found > max(SMALL, RATIO * size):
                    raise Mistake(
                        f"{show(path)} unpacks to more than {RATIO} times its size; if that is right, unpack it"
                    )
                yield block
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise Mistake(f"{show(path)} is not a complete gzip file ({error}); copy it again") from None


def read_text(path: str | Path) -> str:
    """A text, or a mistake that names the line that is none."""
    return decode(read_bytes(path), path).replace("\r\n", "\n").replace("\r", "\n")


def decode(data: bytes, path: str | Path) -> str:
    """UTF-8, its byte-order mark left out."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        wrong = f"byte 0x{data[error.start]:02x} is not UTF-8"
        raise Mistake(f"{show(path)}, line {line}: {wrong}; save the file as UTF-8 (iconv -t utf-8)") from None


def read_records(path: str | Path) -> str:
    """A text of records, in which a NUL byte is a sign of another format."""
    text = read_text(path)
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise Mistake(f"{show(path)}, line {line}: a NUL byte; this is not a text file, or it was damaged")
    return text


def read_objects(path: str | Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Line number and object of every line of a .jsonl file that is not empty."""
    for number, line in enumerate(read_records(path).split("\n"), start=1):
        if line.strip():
            yield number, parse_object(line, f"{show(path)}, line {number}")


def parse_object(line: str, where: str) -> dict[str, Any]:
    """The JSON object of a line."""
    try:
        value = files.parse_json(line, where)
    except Mistake as mistake:
        raise Mistake(f"{mistake}; each line is one JSON object") from None
    if not isinstance(value, dict):
        raise Mistake(f"{where}: a {type(value).__name__}, not a JSON object; each line is one")
    return value


def read_rows(path: str | Path, separator: str = ",") -> Iterator[tuple[int, list[str]]]:
    """Line number and fields of every line; only fields between commas may be quoted."""
    return parse_rows(read_records(path), show(path), separator, quotes=separator != "\t")


def parse_rows(text: str, where: str, separator: str, quotes: bool = True) -> Iterator[tuple[int, list[str]]]:
    """As `read_rows`, from the text itself. A record in quotes may have several lines: its number is the last one's."""
    csv.field_size_limit(LONGEST_FIELD)
    quoting: Literal[0, 3] = csv.QUOTE_MINIMAL if quotes else csv.QUOTE_NONE
    reader = csv.reader(
        io.StringIO(text, newline=""), delimiter=separator, quoting=quoting, skipinitialspace=quotes, strict=True
    )
    try:
        for row in reader:
            yield reader.line_num, row
    except csv.Error as error:
        raise Mistake(f"{where}, line {reader.line_num}: {error}; correct the quotes there") from None


def list_files(folder: str | Path, suffixes: Collection[str] = ()) -> list[Path]:
    """The files below a folder, in the order of their names; hidden ones are left out.

    Links are followed. Of those with one of the `suffixes` (in small letters; none: all) each must be a file.
    """
    root = Path(folder)
    return sorted(_walk(root, suffixes, (_identify(root),)))


def list_entries(folder: str | Path) -> list[Path]:
    """What lies in a folder, by name."""
    try:
        return sorted(Path(folder).iterdir())
    except OSError as error:
        raise Mistake(f"{show(folder)} cannot be read: {files.explain_error(error)}") from None


def _walk(folder: Path, suffixes: Collection[str], above: tuple[tuple[int, int], ...]) -> Iterator[Path]:
    try:
        with os.scandir(folder) as found:
            names = [entry.name for entry in found if not entry.name.startswith(".")]
    except OSError as error:
        raise Mistake(f"{show(folder)} cannot be read: {files.explain_error(error)}") from None
    for name in names:
        path = folder / name
        if os.path.isdir(path):
            here = _identify(path)
            if here in above:
                raise Mistake(f"{show(path)} is a link to a folder that holds it; remove the link")
            yield from _walk(path, suffixes, (*above, here))
        elif os.path.isfile(path) or not suffixes or path.suffix.lower() in suffixes:
            check_file(path)
            yield path


def _identify(folder: Path) -> tuple[int, int]:
    try:
        found = folder.stat()
    except (OSError, ValueError) as error:
        why = files.explain_error(error) if isinstance(error, OSError) else str(error)
        raise Mistake(f"{show(folder)} cannot be read: {why}") from None
    return found.st_dev, found.st_ino


def check_file(path: str | Path) -> os.stat_result:
    """Facts about a file that is there and is one."""
    path = Path(path)
    try:
        found = path.stat()
    except FileNotFoundError:
        what = " is a link to nowhere; repair or remove it" if path.is_symlink() else ": no such file or folder"
        raise Mistake(f"{show(path)}{what}") from None
    except OSError as error:
        raise Mistake(f"{show(path)} cannot be read: {files.explain_error(error)}") from None
    except ValueError:
        raise Mistake(f"{str(path)!r} is not the name of a file") from None
    if not stat.S_ISREG(found.st_mode):
        kind = "a folder" if stat.S_ISDIR(found.st_mode) else "a pipe or a device"
        raise Mistake(f"{show(path)} is {kind}, not a file; give a file")
    return found


def is_folder(path: str | Path) -> bool:
    """Whether there is a folder of this name that may be looked at."""
    try:
        return Path(path).is_dir()
    except OSError as error:
        raise Mistake(f"{show(path)} cannot be read: {files.explain_error(error)}") from None


def show(path: str | Path) -> str:
    """A path as text that can be printed and saved, whatever its encoding."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def digest(path: str | Path) -> str:
    """xxh3 of 128 bits: finds accidents, not forgery."""
    found = xxhash.xxh3_128()
    try:
        with Path(path).open("rb", buffering=0) as file:
            buffer = memoryview(bytearray(4 * BLOCK))
            while size := file.readinto(buffer):
                found.update(buffer[:size])
    except OSError as error:
        raise Mistake(f"{show(path)} cannot be read: {files.explain_error(error)}") from None
    return found.hexdigest()


def cache_folder() -> Path | None:
    """Where what can be made again is kept; None where there is no home folder."""
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "descend"
    except RuntimeError:
        return None


def say(line: str) -> None:
    """One line about something that was put right without asking."""
    print(f"descend: {line}", file=sys.stderr)
