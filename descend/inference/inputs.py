"""What a user names as inputs: images, texts, and files of them. A word that is the name of a file is that file.

    images     files, folders, patterns such as "photos/*.jpg", lists (.csv, .jsonl) with a column path
    texts      .csv, .tsv and .jsonl by the columns that the run was trained on; any other file has a text on each line
    a text     is itself; so is `PlainText("notes.txt")`, even where there is a file of that name

Where a record has a label it is kept as the truth, which the answers can be compared with.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from glob import glob
from pathlib import Path

from descend.data.images.files import SUFFIXES, list_image_files
from descend.data.images.manifest import is_manifest, read_manifest
from descend.data.reading import read_records, show
from descend.data.text.table import SECOND, TextTable, Wanted, find_text, open_table
from descend.errors import Mistake, nearest

TABLES = (".csv", ".tsv", ".jsonl", ".json")
FILES = (*TABLES, ".txt")  # endings that name a file, whether it is there or not


class PlainText(str):
    """A text that is meant as it stands, whatever files there are."""


@dataclass(frozen=True)
class Texts:
    """Texts and, where they come from a table: second texts of pairs, the records, and what their labels say."""

    texts: list[str] = field(default_factory=list)
    seconds: list[str] = field(default_factory=list)
    records: list[Mapping[str, str]] = field(default_factory=list)
    truths: list[str] = field(default_factory=list)

    def add(self, texts: list[str], records: list[Mapping[str, str]], truths: list[str], seconds: list[str]) -> None:
        """More of them; what is missing is filled up with empty texts."""
        self.texts.extend(texts)
        self.records.extend(records)
        self.truths.extend(truths or [""] * len(texts))
        self.seconds.extend(seconds or [""] * len(texts))


def is_file(given: str) -> bool:
    """Whether an input is the name of a file to read."""
    return not isinstance(given, PlainText) and os.path.isfile(given)


def describe_reading(inputs: Sequence[str]) -> list[str]:
    """What there is to say about texts that are also the names of files or folders, a line each."""
    read = [f"reading the file {show(given)}; for the text itself give --text" for given in inputs if is_file(given)]
    taken = [given for given in inputs if not isinstance(given, PlainText) and given and os.path.isdir(given)]
    return read + [f"{show(given)} is taken as a text; there is a folder of this name, too" for given in taken]


def names_images(given: str) -> bool:
    """Whether an input is the name of an image, of a folder, or a pattern of files that exist."""
    if isinstance(given, PlainText):
        return False
    return os.path.isdir(given) or Path(given).suffix.lower() in SUFFIXES or ("*" in given and bool(glob(given)))


def list_images(inputs: Sequence[str]) -> list[Path]:
    """Files, the images of folders and lists, and patterns such as "photos/*.jpg", in the order given."""
    found: list[Path] = []
    for given in inputs:
        path = Path(given)
        if path.is_dir():
            inside, _ = list_image_files(path)
            if not inside:
                raise Mistake(f"{path} holds no images ({', '.join(sorted(SUFFIXES))})")
            found += inside
        elif path.exists():
            found += read_manifest(path).paths if is_manifest(path) else [path]
        else:
            matches = sorted(Path(name) for name in glob(given, recursive=True))
            if not matches:
                raise Mistake(f"{given} does not exist; give image files, folders or a pattern in quotes")
            found += [match for match in matches if match.is_file()]
    return found


def list_truths(inputs: Sequence[str], labels: Sequence[str]) -> list[str]:
    """The classes of the same images where a list or class folders name them, "" where nothing does."""
    found: list[str] = []
    for given in inputs:
        path = Path(given)
        if path.is_file() and is_manifest(path):
            listed = read_manifest(path)
            found += listed.labels or [""] * len(listed.paths)
            continue
        images = list_images([given])
        names = [p.relative_to(path).parts[0] if path.is_dir() else "" for p in images]
        found += names if set(names) <= set(labels) else [""] * len(images)
    return found


def read_texts(inputs: Sequence[str], columns: Wanted | None = None) -> Texts:
    """The texts that are given, and those of the files that are; `columns` are those of the training data."""
    found = Texts()
    for given in inputs:
        if is_file(given):
            read_file(Path(given), columns or Wanted(), found)
        elif not isinstance(given, PlainText) and Path(given).suffix in FILES and len(given.split()) == 1:
            raise Mistake(f"{given} does not exist; give a text or a file of texts, or --text if it is the text itself")
        else:
            found.add([str(given)], [{"text": str(given)}], [], [])
    if not found.texts:
        raise Mistake(f"{inputs[0]} holds no text")
    return found


def read_file(path: Path, columns: Wanted, found: Texts) -> None:
    """Add the texts of a file."""
    kind = Path(path.stem).suffix if path.suffix == ".gz" else path.suffix
    if kind not in TABLES:
        lines = [line for line in read_records(path).split("\n") if line.strip()]
        found.add(lines, [{"text": line} for line in lines], [], [])
        return
    table = open_table(path, columns)
    label = find_name(table, columns.label) or ("label" if "label" in table.names else "")
    text = choose_text(table, columns.text, label)
    records = [{name: show_value(row.get(name, "")) for name in table.names} for row in table.rows]
    truths = [record[label] for record in records] if label else []
    found.add(table.column(text), list(records), truths, table.column(SECOND) if SECOND in table.names else [])


def choose_text(table: TextTable, wanted: str, label: str) -> str:
    """The column of the training texts; of a model that nobody trained here, the one that looks like texts."""
    others = [name for name in table.names if name != label]
    if (name := find_name(table, wanted)) or len(others) == 1:
        return name or others[0]
    if wanted:
        known = ", ".join(table.names)
        raise Mistake(
            f"{table.where} has no column {wanted!r}, which the model learned from.{nearest(wanted, table.names)} "
            f"Columns: {known}"
        )
    return find_text(table, {label, SECOND})


def find_name(table: TextTable, wanted: str) -> str:
    """The column of this name or, where the file names none, of this number; "" where there is none."""
    number = {"source": "1", "target": "2"}.get(wanted, wanted)
    numbered = not table.header and number.isdecimal() and 1 <= int(number) <= len(table.names)
    return wanted if wanted in table.names else table.names[int(number) - 1] if numbered else ""


def show_value(value: object) -> str:
    """A value of a record as text; a gap is empty."""
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
