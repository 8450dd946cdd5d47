"""What can happen to a file of a run or of a model: cut short, flipped bits, wrong values, something else in its place.

    damages_of(path, seed)      {"cut in half": damage, "values.loop.steps = a text": damage, ..}

A damage is applied to a copy. The seed chooses the bits that are flipped and, in a large JSON file, the fields.
"""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

Damage = Callable[[Path], object]
FIELDS = 12  # fields of one JSON file that get wrong values
EACH = 4  # wrong values for one field
DIGITS = "9" * 5000
DEEP = "[" * 100_000 + "]" * 100_000
WRONG: dict[str, Any] = {
    "null": None, "a text": "x", "a number": 7, "-1": -1, "10^30": 10**30, "1e308": 1e308, "NaN": float("nan"),
    "true": True, "a list": [], "an object": {}, "nested lists": [[[]]], "not text": "\ud800",
}  # fmt: skip


def damages_of(path: Path, seed: int) -> dict[str, Damage]:
    """Everything that is tried on this file, by name."""
    found = in_its_place() | {name: _rewrite(change) for name, change in of_bytes(path, seed).items()}
    if path.suffix == ".json":
        found |= of_json(path, seed)
    if path.suffix == ".jsonl":
        found |= of_lines(path)
    if path.suffix == ".safetensors":
        found |= of_header(path)
    return found


def in_its_place() -> dict[str, Damage]:
    """Something else where the file was."""
    return {
        "missing": _remove,
        "a folder in its place": lambda path: _remove(path).mkdir(),
        "a full folder in its place": lambda path: (_remove(path) / "x").mkdir(parents=True),
        "a link loop": lambda path: _remove(path).symlink_to(path.name),
        "a link to nowhere": lambda path: _remove(path).symlink_to("nowhere"),
        "a pipe in its place": lambda path: os.mkfifo(_remove(path)),
    }


def of_bytes(path: Path, seed: int) -> dict[str, Callable[[bytes], bytes]]:
    """Changes of the content."""
    size, draw = path.stat().st_size, random.Random(f"{seed}/{path.name}")
    changes: dict[str, Callable[[bytes], bytes]] = {
        "empty": lambda content: b"",
        "cut in half": lambda content: content[: len(content) // 2],
        "a byte short": lambda content: content[:-1],
        "a byte more": lambda content: content + b"x",
        "a BOM": lambda content: b"\xef\xbb\xbf" + content,
        "UTF-16": lambda content: content.decode("utf-8", "replace").encode("utf-16"),
        "Latin-1": lambda content: content.replace(b'": "', b'": "\xe9', 1),
        "a NUL": lambda content: content[: len(content) // 2] + b"\0" + content[len(content) // 2 :],
        "zeros": lambda content: bytes(len(content)),
        "noise": lambda content: draw.randbytes(len(content)),
    }
    for at in sorted(draw.randrange(8 * size) for _ in range(4 if size else 0)):
        changes[f"bit {at} flipped"] = lambda content, at=at: _flip(content, at)  # type: ignore[misc]
    return changes


def of_json(path: Path, seed: int) -> dict[str, Damage]:
    """Wrong values, fields left out, numbers and nesting without measure."""
    value = json.loads(path.read_text(encoding="utf-8"))
    found: dict[str, Damage] = {
        f"all is {name}": _writes(json.dumps(wrong)) for name, wrong in WRONG.items() if not isinstance(wrong, dict)
    }
    found["all is {}"] = _writes("{}")
    found["deep lists"] = _writes(DEEP)
    found["deep objects"] = _writes('{"a":' * 100_000)
    places = list(find_places(value))
    draw = random.Random(f"{seed}/{path.name}/fields")
    draw.shuffle(places)
    for place in sorted(places[:FIELDS], key=str):
        name = ".".join(map(str, place))
        found[f"{name} left out"] = _writes(json.dumps(change_place(value, place, None, remove=True)))
        for what in draw.sample(sorted(WRONG), EACH):
            found[f"{name} = {what}"] = _writes(json.dumps(change_place(value, place, WRONG[what])))
        text = json.dumps(change_place(value, place, "\x07"))
        found[f"{name} = 5,000 digits"] = _writes(text.replace('"\\u0007"', DIGITS))
        found[f"{name} = deep"] = _writes(text.replace('"\\u0007"', DEEP))
    return found


def of_lines(path: Path) -> dict[str, Damage]:
    """A wrong line in the middle of metrics.jsonl, and at its end."""
    lines = path.read_text(encoding="utf-8").splitlines()
    wrong = {
        "half a line": lines[0][: len(lines[0]) // 2], "a list": "[]", "a number": "7", "null": "null", "{}": "{}",
        "a deep line": DEEP, "a long number": DIGITS, "a step that is a text": '{"step": "x", "loss": 1.0}',
        "a step that is null": '{"step": null}', "a huge step": '{"step": 1' + "0" * 400 + "}",
        "a long step": '{"step": ' + DIGITS + "}", "a loss that is a text": '{"step": 2, "loss": "x", "time": "y"}',
        "scores that are a list": '{"step": 2, "valid": [1]}', "an event that is a list": '{"step": 2, "event": []}',
        "scores that are texts": '{"step": 2, "valid": {"loss": "x"}}', "a negative step": '{"step": -3, "loss": 1.0}',
        "a time that is null": '{"step": 2, "loss": 1.0, "time": null, "lr": null}', "not text": '"\\ud800"',
    }  # fmt: skip
    found: dict[str, Damage] = {}
    for name, line in wrong.items():
        found[f"{name} inside"] = _writes("\n".join([*lines[:2], line, *lines[2:]]) + "\n")
        found[f"{name} at the end"] = _writes("\n".join([*lines, line]))
    return found


def of_header(path: Path) -> dict[str, Damage]:
    """Headers of .safetensors files that lie."""
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    header, body = json.loads(content[8 : 8 + length]), content[8 + length :]
    name = max((key for key in header if key != "__metadata__"), key=lambda key: header[key]["data_offsets"][1])
    entry = header[name]
    start, end = entry["data_offsets"]
    lies: dict[str, dict[str, Any]] = {
        "offsets beyond the file": {"data_offsets": [start, end + 2**40]},
        "offsets negative": {"data_offsets": [-4, end]},
        "offsets the wrong way round": {"data_offsets": [end, start]},
        "offsets that overlap": {"data_offsets": [0, end - start]},
        "one offset": {"data_offsets": [start]},
        "offsets as texts": {"data_offsets": ["0", "4"]},
        "a huge offset": {"data_offsets": [0, 10**30]},
        "a huge shape": {"shape": [2**40, 2**40]},
        "a product that wraps to 0": {"shape": [2**32, 2**32]},
        "a negative shape": {"shape": [-1, 4]},
        "a shape that is a number": {"shape": 7},
        "a shape of texts": {"shape": ["4"]},
        "a shape of fractions": {"shape": [1.5]},
        "I32 instead of F32": {"dtype": "I32"},
        "U32 instead of F32": {"dtype": "U32"},
        "an unknown type": {"dtype": "F31"},
        "a type of half the size": {"dtype": "F16"},
        "a type that is null": {"dtype": None},
    }
    found = {key: _header({**header, name: {**entry, **lie}}, body) for key, lie in lies.items()}
    for field in entry:
        found[f"{field} left out"] = _header(
            {**header, name: {key: value for key, value in entry.items() if key != field}}, body
        )
    found |= {
        "a tensor left out": _header({key: value for key, value in header.items() if key != name}, body),
        "a tensor more": _header({**header, "extra": entry}, body),
        "an entry that is a list": _header({**header, name: []}, body),
        "metadata that is a list": _header({**header, "__metadata__": []}, body),
        "metadata of numbers": _header({**header, "__metadata__": {"format": 1}}, body),
        "a header that is a list": _header([], body),
        "a deep header": _rewrite(lambda _: len(DEEP).to_bytes(8, "little") + DEEP.encode() + body),
        "a header of 2^63 bytes": _rewrite(lambda content: (2**63).to_bytes(8, "little") + content[8:]),
        "a header of no bytes": _rewrite(lambda content: bytes(8) + content[8:]),
        "numbers of NaN": _rewrite(lambda content: content[: 8 + length] + b"\xff" * len(body)),
    }
    return found


def find_places(value: Any, place: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Where a JSON value can be changed: every key and, of each list, the first and the last."""
    if isinstance(value, dict):
        for key in value:
            yield (*place, key)
            yield from find_places(value[key], (*place, key))
    elif isinstance(value, list):
        for at in sorted({0, len(value) - 1} if value else ()):
            yield (*place, at)
            yield from find_places(value[at], (*place, at))


def change_place(value: Any, place: tuple[str | int, ...], to: Any, remove: bool = False) -> Any:
    """A copy of the value with something else at that place, or without it."""
    changed = json.loads(json.dumps(value))
    inner = changed
    for key in place[:-1]:
        inner = inner[key]
    if remove:
        del inner[place[-1]]
    else:
        inner[place[-1]] = to
    return changed


def _flip(content: bytes, at: int) -> bytes:
    changed = bytearray(content)
    changed[at // 8] ^= 1 << at % 8
    return bytes(changed)


def _remove(path: Path) -> Path:
    """The path, with nothing there any more."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()
    return path


def _rewrite(change: Callable[[bytes], bytes]) -> Damage:
    return lambda path: path.write_bytes(change(path.read_bytes()))


def _writes(text: str) -> Damage:
    return lambda path: path.write_bytes(text.encode("utf-8", "surrogatepass"))


def _header(header: Any, body: bytes) -> Damage:
    text = json.dumps(header).encode()
    return lambda path: path.write_bytes(len(text).to_bytes(8, "little") + text + body)
