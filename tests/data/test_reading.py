"""The user's files: every hindrance is one line that names the file, and the line where there is one."""

from __future__ import annotations

import gzip
import io
import os
import time
from pathlib import Path

import pytest

from descend.data import reading
from descend.data.images.files import list_image_files, open_image
from descend.data.images.idx import read_idx
from descend.data.images.idx_folder import idx_folder
from descend.data.images.listing import image_folder
from descend.data.reading import digest, list_files, parse_rows, read_objects, read_rows, read_text, show, unpack
from descend.data.tables.source import Table, read_csv
from descend.errors import Mistake
from tests.data.photos import folder as photos


@pytest.mark.parametrize(
    ("put", "message"),
    [
        (lambda path: path.mkdir(), "is a folder, not a file"),
        (os.mkfifo, "is a pipe or a device"),
        (lambda path: path.symlink_to("/dev/zero"), "is a pipe or a device"),
        (lambda path: path.symlink_to("nowhere"), "is a link to nowhere"),
        (lambda path: path.symlink_to(path.name), "its links go in a circle"),
        (lambda path: None, "no such file or folder"),
    ],
)
def test_what_is_no_file_is_named_at_once(put: object, message: str, tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    assert callable(put)
    put(path)
    for read in (read_text, read_csv, read_idx, lambda p: open_image(p).__enter__()):
        with pytest.raises(Mistake, match=message) as caught:
            read(path)
        assert str(path) in str(caught.value)


def test_marks_line_ends_and_packing_make_no_difference(tmp_path: Path) -> None:
    path = tmp_path / "a"
    for data in (b"a\nb\nc\n", b"\xef\xbb\xbfa\r\nb\rc\n", gzip.compress(b"a\nb\r\nc\n", mtime=0)):
        path.write_bytes(data)
        assert read_text(path) == "a\nb\nc\n"


def test_long_fields_are_read_and_nul_bytes_are_not(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text(f"{'x' * 300_000}\tyes\n")
    assert [len(field) for _, row in read_rows(path, "\t") for field in row] == [300_000, 3]
    path.write_bytes(b"a\tb\nc\0\td\n")
    with pytest.raises(Mistake, match=r"a\.tsv, line 2: a NUL byte"):
        list(read_rows(path, "\t"))
    with pytest.raises(Mistake, match=r"here, line 2: .*correct the quotes"):
        list(parse_rows('a,b\n"c,d\n', "here", ","))


@pytest.mark.parametrize(
    "line", ['{"a": ', "[1]", '{"a": ' + "[" * 5000, '{"a": "\\ud800"}', '{"a": ' + "9" * 5000 + "}"]
)
def test_lines_that_are_no_objects_are_named(line: str, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"a": 1}\n\n' + line + "\n")
    with pytest.raises(Mistake, match=r"a\.jsonl, line 3") as caught:
        list(read_objects(path))
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


def test_a_gzip_bomb_is_not_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "SMALL", 2**21)
    packed = gzip.compress(bytes(2**24), mtime=0)
    unpacked = unpack(Path("bomb.gz"), io.BytesIO(packed), len(packed))
    assert sum(len(next(unpacked)) for _ in range(2)) == 2**21
    with pytest.raises(Mistake, match="unpacks to more than 100 times"):
        next(unpacked)


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ("00000803 ffffffff ffffffff ffffffff", "is truncated"),
        ("00000801 00000002", "longer than its header says"),
        ("000008ff", "is not an IDX file"),
    ],
)
def test_idx_headers_are_not_believed(sizes: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(gzip.compress(bytes.fromhex(sizes) + bytes(2**23), mtime=0))
    with pytest.raises(Mistake, match=message):
        read_idx(path)


def test_a_label_of_two_thousand_million_makes_no_classes(tmp_path: Path) -> None:
    (tmp_path / "train-images-idx3-ubyte").write_bytes(bytes.fromhex("00000803 00000002 00000001 00000001") + b"ab")
    labels = bytes.fromhex("00000c01 00000002 00000000 7fffffff")
    (tmp_path / "train-labels-idx1-ubyte").write_bytes(labels)
    with pytest.raises(Mistake, match="record 1 has label 2147483647"):
        idx_folder(tmp_path)


def test_links_below_a_folder(tmp_path: Path) -> None:
    root, elsewhere = photos(tmp_path / "root", each=2, classes=("cat",)), photos(tmp_path / "more", each=3)
    (root / "cat" / "linked").symlink_to(elsewhere / "owl")
    assert len(list_image_files(root)[0]) == 5, "a link to a folder is followed"
    (root / "cat" / "up").symlink_to(root)
    with pytest.raises(Mistake, match="up is a link to a folder that holds it"):
        list_files(root)
    (root / "cat" / "up").unlink()
    (root / "cat" / "gone.txt").symlink_to("nowhere")
    assert len(list_image_files(root)[0]) == 5
    (root / "cat" / "gone.png").symlink_to("nowhere")
    with pytest.raises(Mistake, match=r"gone\.png is a link to nowhere"):
        list_image_files(root)


def test_names_that_are_not_utf8_are_shown_by_their_bytes(tmp_path: Path) -> None:
    root = photos(tmp_path / "root", each=8, classes=("cat", "dog"))
    (root / "cat").rename(os.fsdecode(os.fsencode(root) + b"/caf\xe9"))
    found = image_folder(root, 0.2, 0.2)
    assert found.labels == ("caf\\xe9", "dog")
    assert all(name.encode() for name in found.names)
    assert show(root / os.fsdecode(b"\xff")).endswith("\\xff")


def test_a_table_of_40000_columns(tmp_path: Path) -> None:
    names = [f"c{i}" for i in range(40_000)]
    path = tmp_path / "wide.csv"
    path.write_text("\n".join([",".join(names), ",".join(["1"] * len(names))]))
    began = time.process_time()
    assert len(read_csv(path).columns) == 40_000
    assert time.process_time() - began < 3, "by the square of the columns it takes a minute"
    with pytest.raises(Mistake, match="and 39,980 more") as caught:
        Table(str(path)).read()
    assert len(str(caught.value)) < 400
    path.write_text(",".join([*names, "c7"]) + "\n")
    with pytest.raises(Mistake, match="two columns are called 'c7'"):
        read_csv(path)


@pytest.mark.parametrize("text", [",,,\n", "a,b\n" + ",".join(["1e308", "2"]) + "\n", '"""\n'])
def test_odd_tables_are_named(text: str, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(text)
    with pytest.raises(Mistake, match=r"t\.csv"):
        Table(str(path), target="b").read()


def test_a_digest_is_of_the_content(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    for path in (one, two):
        path.write_bytes(bytes(5 * 2**20))
    assert digest(one) == digest(two)
    two.write_bytes(bytes(5 * 2**20 - 1) + b"\1")
    assert digest(one) != digest(two)
