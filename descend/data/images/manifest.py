"""Manifests: a file that lists images, with a label, a caption or both, and the part each belongs to if it says so.

    .csv     a header line that names the columns, commas and quotes        path,label      image,caption      ...
    .jsonl   one object per line                                              {"image": "a.jpg", "caption": "a square"}

Paths are relative to the manifest. The columns go by the names below.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from descend.errors import Mistake

COLUMNS = {
    "path": ("path", "image", "file", "file_name", "filename"),
    "label": ("label", "class"),
    "caption": ("caption", "text"),
    "part": ("part", "split"),
}
PARTS = {"train": "train", "training": "train", "valid": "valid", "val": "valid", "validation": "valid", "test": "test"}


@dataclass(frozen=True)
class Manifest:
    """n images; a column that the file does not have is empty."""

    paths: list[Path]
    labels: list[str]
    captions: list[str]
    parts: list[str]


def is_manifest(path: str | Path) -> bool:
    """Whether a path names a manifest, by its ending."""
    return Path(path).suffix.lower() in (".csv", ".jsonl")


def read_manifest(path: str | Path) -> Manifest:
    """Every line must have the columns that the first has, and name a file that exists."""
    file = Path(path)
    columns: dict[str, list[str]] = {name: [] for name in COLUMNS}
    for where, record in _records(file):
        row = {ours: record[name] for ours, names in COLUMNS.items() for name in names if name in record}
        if "path" not in row or not ({"label", "caption"} & set(row)):
            found = ", ".join(map(str, record)) or "nothing"
            raise Mistake(f"{where}: the columns are {found}; a manifest needs path and label, or path and caption")
        for name, value in row.items():
            if not isinstance(value, str | int) or str(value).strip() == "":
                raise Mistake(f"{where}: {name} is {value!r}; give a word")
            columns[name].append(str(value).strip())
        uneven = [name for name, values in columns.items() if values and len(values) != len(columns["path"])]
        if uneven:
            raise Mistake(f"{where}: not every line has {uneven[0]}; give it in all lines or in none")
        _check_row(where, file.parent / columns["path"][-1], columns["part"][-1:])
    if not columns["path"]:
        raise Mistake(f"{file} lists no image; give lines of path and label")
    paths = [file.parent / name for name in columns["path"]]
    return Manifest(paths, columns["label"], columns["caption"], [PARTS[p.lower()] for p in columns["part"]])


def _check_row(where: str, image: Path, part: list[str]) -> None:
    if not image.is_file():
        raise Mistake(f"{where}: {image} does not exist; paths are relative to the manifest")
    if part and part[0].lower() not in PARTS:
        raise Mistake(f"{where}: part {part[0]!r} is not train, valid or test")


def _records(file: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Where it stands, and the record."""
    try:
        text = file.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise Mistake(f"--data.path {file} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise Mistake(f"{file}: byte {error.start} is not UTF-8; save the file as UTF-8") from None
    if file.suffix.lower() == ".csv":
        yield from _table(file, text)
        return
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            where = f"{file}, line {number}"
            try:
                value = json.loads(line)
            except json.JSONDecodeError as error:
                raise Mistake(f"{where}: {error.msg}; each line is one JSON object") from None
            if not isinstance(value, dict):
                raise Mistake(f"{where}: a {type(value).__name__}; each line is one JSON object")
            yield where, value


def _table(file: Path, text: str) -> Iterator[tuple[str, dict[str, Any]]]:
    rows = csv.reader(text.splitlines(keepends=True))
    try:
        header = [name.strip().lower() for name in next(rows, [])]
        for row in rows:
            where = f"{file}, line {rows.line_num}"
            if row and len(row) != len(header):
                raise Mistake(f"{where}: {len(row)} values for {len(header)} columns; quote values that have commas")
            if row:
                yield where, dict(zip(header, row, strict=True))
    except csv.Error as error:
        raise Mistake(f"{file}, line {rows.line_num}: {error}; correct the line") from None
