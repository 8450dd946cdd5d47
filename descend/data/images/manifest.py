"""Manifests: a file that lists images, with a label, a caption or both, and the part each belongs to if it says so.

    .csv     a header line that names the columns, commas and quotes        path,label      image,caption      ...
    .jsonl   one object per line                                              {"image": "a.jpg", "caption": "a square"}

Paths are relative to the manifest. The columns go by the names below; a further one may say what images belong to (a
patient, a film), so that those of a group can stay together.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from descend.data.reading import check_file, read_objects, read_rows, show
from descend.errors import Mistake, nearest

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
    groups: list[str] = field(default_factory=list)


def is_manifest(path: str | Path) -> bool:
    """Whether a path names a manifest, by its ending."""
    return Path(path).suffix.lower() in (".csv", ".jsonl")


def read_manifest(path: str | Path, group: str = "") -> Manifest:
    """Every line must have the columns that the first has (that of the groups too), and name a file that exists."""
    file = Path(path)
    columns: dict[str, list[str]] = {name: [] for name in (*COLUMNS, "group")}
    grouping = group.lower() if file.suffix.lower() == ".csv" else group  # a table's names are in small letters
    for where, record in _records(file):
        row = {ours: record[name] for ours, names in COLUMNS.items() for name in names if name in record}
        if "path" not in row or not ({"label", "caption"} & set(row)):
            found = ", ".join(map(str, record)) or "nothing"
            raise Mistake(f"{where}: the columns are {found}; a manifest needs path and label, or path and caption")
        if group:
            if grouping not in record:
                known = ", ".join(map(str, record))
                raise Mistake(
                    f"--data.group {group}: {where} has no such column.{nearest(group, record)} Columns: {known}"
                )
            row["group"] = record[grouping]
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
    parts = [PARTS[p.lower()] for p in columns["part"]]
    return Manifest(paths, columns["label"], columns["caption"], parts, columns["group"])


def _check_row(where: str, image: Path, part: list[str]) -> None:
    try:
        check_file(image)
    except Mistake as mistake:
        raise Mistake(f"{where}: {mistake}; paths are relative to the manifest") from None
    if part and part[0].lower() not in PARTS:
        raise Mistake(f"{where}: part {part[0]!r} is not train, valid or test")


def _records(file: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Where it stands, and the record."""
    found = _table(file) if file.suffix.lower() == ".csv" else read_objects(file)
    return ((f"{show(file)}, line {number}", record) for number, record in found)


def _table(file: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Line number and record of every line below the header."""
    rows = ((number, row) for number, row in read_rows(file) if any(row))
    line, header = next(rows, (1, []))
    header = [name.strip().lower() for name in header]
    if len(set(header)) < len(header):
        raise Mistake(f"{show(file)}, line {line}: two columns have the same name; rename one")
    for number, row in rows:
        if len(row) != len(header):
            told = f"{len(row)} values for {len(header)} columns"
            raise Mistake(f"{show(file)}, line {number}: {told}; quote values that have commas")
        yield number, dict(zip(header, row, strict=True))
