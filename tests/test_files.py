"""One reader for every JSON file: whatever is in the way is one line that names the file and the field."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from descend.errors import Mistake
from descend.files import entries, field, field_or, items, parse_metrics, read_json, write_json

IN_THE_WAY: dict[str, tuple[Callable[[Path], object], str]] = {
    "nothing": (lambda p: None, "does not exist"),
    "a link to nowhere": (lambda p: p.symlink_to("nowhere"), "does not exist .a link to nowhere"),
    "a folder": (lambda p: p.mkdir(), "is a folder, not a file"),
    "a pipe": (lambda p: os.mkfifo(p), "is a pipe, not a file"),
    "a link to itself": (lambda p: p.symlink_to(p.name), "its links go in a circle"),
    "no bytes": (lambda p: p.write_bytes(b""), "is not valid JSON"),
    "half a file": (lambda p: p.write_text('{"a": '), "is not valid JSON"),
    "NUL bytes": (lambda p: p.write_bytes(bytes(9)), "is not valid JSON"),
    "Latin-1": (lambda p: p.write_bytes(b'{\n"a": "\xe9"}'), r"line 2: not UTF-8 \(byte 0xe9\)"),
    "a byte-order mark": (lambda p: p.write_bytes(b"\xef\xbb\xbf{}"), "byte-order mark"),
    "a list": (lambda p: p.write_text("[1]"), "holds a list, not a JSON object"),
    "a number": (lambda p: p.write_text("7"), "holds 7, not a JSON object"),
    "deep lists": (lambda p: p.write_text("[" * 10**5), "nested too deeply"),
    "deep objects": (lambda p: p.write_text('{"a":' * 300 + "1" + "}" * 300), "nested too deeply"),
    "a long number": (lambda p: p.write_text('{"a": ' + "9" * 5000 + "}"), "a number of 5,000 digits"),
    "half a character": (lambda p: p.write_text('{"a": "\\ud800"}'), "half a character"),
}


@pytest.mark.parametrize("what", IN_THE_WAY)
def test_what_is_in_the_way_is_named(what: str, tmp_path: Path) -> None:
    make, said = IN_THE_WAY[what]
    make(tmp_path / "x.json")
    with pytest.raises(Mistake, match=said) as caught:
        read_json(tmp_path / "x.json")
    assert "x.json" in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def test_a_file_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x.json").write_text("{}")

    def refuse(_path: Path) -> bytes:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(Mistake, match=r"x.json cannot be read: permission denied"):
        read_json(tmp_path / "x.json")


def test_more_bytes_than_are_read(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text('{"a": 1}')
    assert read_json(tmp_path / "x.json", most=8) == {"a": 1}
    with pytest.raises(Mistake, match=r"x.json has 8 bytes; at most 7"):
        read_json(tmp_path / "x.json", most=7)


def test_characters_that_json_writes_as_pairs_are_whole(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text(json.dumps({"a": "𝄞é"}))
    assert read_json(tmp_path / "x.json") == {"a": "𝄞é"}


@pytest.mark.parametrize(
    ("name", "kind", "value"),
    [("n", int, 3), ("x", float, 0.5), ("n", float, 3), ("b", bool, True), ("in.side", str, "s"), ("l", list, [1, 2])],
)
def test_a_field_of_its_type(name: str, kind: type, value: object) -> None:
    data = {"n": 3, "x": 0.5, "b": True, "in": {"side": "s"}, "l": [1, 2]}
    assert field(data, name, kind, "f.json") == value


@pytest.mark.parametrize(
    ("name", "kind", "said"),
    [
        ("threads", int, "f.json lacks 'threads'"),
        ("n", str, "f.json: n is 3, not a text"),
        ("b", int, "f.json: b is true, not a whole number"),
        ("b", float, "f.json: b is true, not a number"),
        ("x", int, "f.json: x is 0.5, not a whole number"),
        ("none", dict, "f.json: none is null, not an object"),
        ("huge", int, "f.json: huge = 9223372036854775808 is too large"),
        ("huge", float, "f.json: huge = 9223372036854775808 is too large"),
        ("n.inside", int, "f.json: n is 3, not an object"),
        ("in.missing", int, "f.json lacks 'in.missing'"),
        ("long", int, 'f.json: long is "xxx'),
    ],
)
def test_a_field_that_is_wrong_is_named(name: str, kind: type, said: str) -> None:
    data: dict[str, Any] = {"n": 3, "x": 0.5, "b": True, "none": None, "huge": 2**63, "in": {}, "long": "x" * 1000}
    with pytest.raises(Mistake) as caught:
        field(data, name, kind, "f.json")
    assert str(caught.value).startswith(said)
    assert len(str(caught.value)) < 200


def test_lists_and_objects_of_one_type() -> None:
    data = {"l": [1, "2"], "o": {"a": 1, "b": None}, "right": [1, 2], "map": {"a": "b"}}
    assert items(data, "right", int, "f") == [1, 2]
    assert entries(data, "map", str, "f") == {"a": "b"}
    assert field_or(data, "other", int, 9, "f") == 9
    with pytest.raises(Mistake, match=r"f: l\[1\] is \"2\", not a whole number"):
        items(data, "l", int, "f")
    with pytest.raises(Mistake, match=r"f: o.b is null, not a whole number"):
        entries(data, "o", int, "f")


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "7", "null", "{}", "[" * 10**5, '{"step": "x"}', '{"step": null}', '{"step": -1}', '{"step": true}',
     '{"step": 1, "valid": [1]}', '{"step": 1, "event": []}', '{"step": 1, "time": "x"}', '{"step": ' + "9" * 30 + "}",
     b'{"step": 1, "a": "\xe9"}'],
)  # fmt: skip
def test_a_damaged_line_of_metrics_is_none(text: str | bytes) -> None:
    assert parse_metrics(text) is None


def test_a_line_of_metrics_is_read() -> None:
    line = {"step": 3, "time": 0.5, "valid": {"loss": float("inf")}}
    assert parse_metrics(json.dumps(line)) == parse_metrics(json.dumps(line).encode()) == line


def test_what_is_written_is_read_back_and_nothing_else_is_left(tmp_path: Path) -> None:
    for value in ({"b": [1, 2.5], "a": "é"}, {"b": None}):
        write_json(tmp_path / "x.json", value)
        assert read_json(tmp_path / "x.json") == value
    assert [path.name for path in tmp_path.iterdir()] == ["x.json"]


def test_the_file_is_on_disk_before_it_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Content, then name, then folder: in any other order a crash leaves an empty file, or none."""
    done: list[str] = []
    sync, rename = os.fsync, os.replace

    def note_sync(handle: int) -> None:
        done.append(os.readlink(f"/proc/self/fd/{handle}"))
        sync(handle)

    def note_rename(source: Path, target: Path) -> None:
        done.append("rename")
        rename(source, target)

    monkeypatch.setattr(os, "fsync", note_sync)
    monkeypatch.setattr(os, "replace", note_rename)
    write_json(tmp_path / "x.json", {})
    assert [Path(name).name for name in done] == [f".x.json.{os.getpid()}", "rename", tmp_path.name]


def test_a_full_disk_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_json(tmp_path / "x.json", {"old": 1})

    def full(_handle: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_json(tmp_path / "x.json", {"new": 1})
    assert read_json(tmp_path / "x.json") == {"old": 1}
    assert [path.name for path in tmp_path.iterdir()] == ["x.json"]
