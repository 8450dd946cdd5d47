"""Files that nobody vouches for: what is read is bounded and typed, what is written is there or is not.

    data = read_json(path)                            a JSON object
    threads = field(data, "environment.threads", int, path)
    write_json(path, value)                           aside, synced, renamed: after a crash the old file or the new one

Whatever is in the way (no file, a folder, a pipe, a link to itself, bytes that are not UTF-8, a list instead of an
object, a text instead of a number) is a `Mistake` of one line that names the file and the field.
"""

from __future__ import annotations

import errno
import json
import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar, cast

from descend.errors import Mistake, naming

LARGEST = 2**28  # bytes of a file that is read whole; annotations of images may have more, and say so
DEEPEST = 200  # objects and lists inside one another
DIGITS = 40  # of a whole number: 128 bits, as the states of random generators have
SHOWN = 60  # characters of a wrong value that a message repeats
KINDS = {
    int: "a whole number",
    float: "a number",
    str: "a text",
    bool: "true or false",
    list: "a list",
    dict: "an object",
}
SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
Kind = TypeVar("Kind")


def read_bytes(path: Path, most: int = LARGEST) -> bytes:
    """The content of a regular file of at most `most` bytes."""
    try:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode):
            raise Mistake(f"{path} is {_name_kind(found.st_mode)}, not a file")
        if found.st_size > most:
            raise Mistake(f"{path} has {found.st_size:,} bytes; at most {most:,} are read")
        return path.read_bytes()
    except FileNotFoundError:
        link = " (a link to nowhere)" if path.is_symlink() else ""
        raise Mistake(f"{path} does not exist{link}") from None
    except OSError as error:
        raise Mistake(f"{path} cannot be read: {explain_error(error)}") from None
    except ValueError:
        raise Mistake(f"{str(path)!r} is not the name of a file") from None


def read_text(path: Path, most: int = LARGEST) -> str:
    """A text file of UTF-8."""
    content = read_bytes(path, most)
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise Mistake(f"{path}, line {line}: not UTF-8 (byte {content[error.start]:#04x}); convert the file") from None


def read_json(path: Path, most: int = LARGEST) -> dict[str, Any]:
    """The JSON object in a file."""
    value = parse_json(read_text(path, most), path)
    if not isinstance(value, dict):
        raise Mistake(f"{path} holds {_show(value)}, not a JSON object")
    return value


def parse_json(text: str, where: object) -> Any:
    """The value of a JSON text; `where` is the file, or the file and the line."""
    if text.startswith("\ufeff"):
        raise Mistake(f"{where} begins with a byte-order mark; save it as UTF-8 without one")
    try:
        value = json.loads(text, parse_int=_parse_int)
        if SURROGATE.search(text):
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except RecursionError:
        raise Mistake(f"{where} is not valid: lists or objects are nested too deeply") from None
    except UnicodeEncodeError:
        raise Mistake(
            f"{where} holds half a character (a lone surrogate \\ud800 .. \\udfff); correct the text"
        ) from None
    except ValueError as error:
        raise Mistake(f"{where} is not valid JSON: {error}") from None
    if exceeds_depth(value):
        raise Mistake(f"{where} is not valid: lists or objects are nested too deeply")
    return value


def parse_metrics(text: str | bytes) -> dict[str, Any] | None:
    """A line of metrics.jsonl: a step, and numbers, texts or scores beside it; None for one that is damaged."""
    try:
        line = parse_json(text.decode("utf-8") if isinstance(text, bytes) else text, "metrics.jsonl")
    except (Mistake, UnicodeDecodeError):
        return None
    if not isinstance(line, dict) or type(line.get("step")) is not int or not 0 <= line["step"] < 2**63:
        return None
    seconds, scores = line.get("time", 0.0), (line.get("valid", {}), line.get("test", {}))
    right = isinstance(seconds, int | float) and isinstance(line.get("event", ""), str)
    return line if right and all(isinstance(part, dict) for part in scores) else None


def exceeds_depth(value: Any, deepest: int = DEEPEST) -> bool:
    """Whether lists and objects lie deeper in one another than that."""
    level = [value]
    for _ in range(deepest):
        nested = [inner for inner in level if isinstance(inner, dict | list) and inner]
        if not nested:
            return False
        level = [part for inner in nested for part in (inner.values() if isinstance(inner, dict) else inner)]
    return True


def field(data: Mapping[str, Any], name: str, kind: type[Kind], where: object) -> Kind:
    """The value of a field, of this type; "environment.threads" is inside another one.

    A whole number has at most 64 bits and is taken where any number is expected; true is no number.
    """
    value: Any = data
    for at, key in enumerate(keys := name.split(".")):
        if not isinstance(value, Mapping):
            raise Mistake(f"{where}: {'.'.join(keys[:at])} is {_show(value)}, not an object")
        if key not in value:
            raise Mistake(f"{where} lacks {'.'.join(keys[: at + 1])!r}")
        value = value[key]
    return _check(value, name, kind, where)


def field_or(data: Mapping[str, Any], name: str, kind: type[Kind], default: Kind, where: object) -> Kind:
    """The same, or the default where there is no such field."""
    return field(data, name, kind, where) if name in data else default


def items(data: Mapping[str, Any], name: str, kind: type[Kind], where: object) -> list[Kind]:
    """A list, each item of this type."""
    return [_check(value, f"{name}[{at}]", kind, where) for at, value in enumerate(field(data, name, list, where))]


def entries(data: Mapping[str, Any], name: str, kind: type[Kind], where: object) -> dict[str, Kind]:
    """An object, each value of this type."""
    return {key: _check(value, f"{name}.{key}", kind, where) for key, value in field(data, name, dict, where).items()}


def write_json(path: Path, value: object) -> None:
    """Write a JSON file, indented and sorted, so that a crash leaves the old file or the new one."""
    write_text(path, json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False) + "\n")


def write_text(path: Path, text: str) -> None:
    """Write a text file of UTF-8, as `write_bytes` does."""
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file aside, sync it, rename it, and sync its folder. An OSError leaves what was there before."""
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with naming(path), aside.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, path)
    except OSError:
        aside.unlink(missing_ok=True)
        raise
    sync(path.parent)


def sync(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        with naming(path):
            os.fsync(handle)
    finally:
        os.close(handle)


def explain_error(error: OSError) -> str:
    """What the system says, in a few words."""
    words = {errno.ELOOP: "its links go in a circle", errno.EACCES: "permission denied; change its owner or mode"}
    return words.get(error.errno or 0, (error.strerror or str(error)).lower())


def _parse_int(digits: str) -> int:
    if len(digits) > DIGITS:
        raise ValueError(f"a number of {len(digits):,} digits")
    return int(digits)


def _check(value: Any, name: str, kind: type[Kind], where: object) -> Kind:
    number = isinstance(value, int) and not isinstance(value, bool)
    fits = number or isinstance(value, float) if kind is float else number if kind is int else isinstance(value, kind)
    if not fits:
        raise Mistake(f"{where}: {name} is {_show(value)}, not {KINDS.get(kind, kind.__name__)}")
    if number and abs(value) >= 2**63:
        raise Mistake(f"{where}: {name} = {_show(value)} is too large")
    return cast(Kind, value)


def _show(value: Any) -> str:
    """A wrong value: itself where it is short."""
    if isinstance(value, dict | list):
        return KINDS[type(value)]
    text = json.dumps(value)
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 3]}..."


def _name_kind(mode: int) -> str:
    return "a folder" if stat.S_ISDIR(mode) else "a pipe" if stat.S_ISFIFO(mode) else "a device"
