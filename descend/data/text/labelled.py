"""Labelled texts: the user's file, or passages of the Python documentation with the chapter they come from.

    .jsonl   one object per line: {"text": "..", "label": ".."}; with "text_b" it is a pair of texts
    .tsv     text TAB label, or a header line that names the columns text, label and text_b; .csv with commas and quotes

The file is cut into train, valid and test once and for all, class by class, independently of the run's seed.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from descend.data.images.labelled import check_shares, split_by_class
from descend.data.streams.arrays import InOrder
from descend.data.streams.by_length import ByLength
from descend.errors import Mistake
from descend.text.inputs import Inputs

Batch = dict[str, Tensor]
CHAPTERS = {
    "specialnames": "special methods",
    "compound": "compound statements",
    "types": "types",
    "string-methods": "string methods",
    "debugger": "debugger",
    "typesseq": "sequences",
    "typesmapping": "mappings",
    "formatstrings": "format strings",
    "import": "import",
    "execmodel": "execution",
}


@dataclass(frozen=True)
class Labelled:
    """Texts (and second texts, where they are pairs) with classes, and the rows of the three parts."""

    texts: list[str]
    seconds: list[str]
    y: Tensor
    names: tuple[str, ...]
    ids: Tensor
    parts: dict[str, Tensor]

    def arrays(self, part: str, inputs: Inputs) -> Batch:
        """x, mask (and segments, for pairs), padded to the longest text of the part; y; ids are lines of the file."""
        rows = self.parts[part].tolist()
        if self.seconds:
            encoded = inputs.batch([inputs.encode(self.texts[i], self.seconds[i]) for i in rows])
        else:
            encoded = inputs.batch([inputs.encode(self.texts[i]) for i in rows])
            del encoded["segments"]
        return {**encoded, "y": self.y[rows], "ids": self.ids[rows]}


@dataclass(frozen=True)
class LabelledText:
    """Where the texts come from, and how they are cut into tokens and parts."""

    path: str = ""
    """A .jsonl, .tsv or .csv file of texts and labels; empty: passages of the Python documentation, by chapter."""
    vocab: int = 1024
    """Tokens that BPE learns (a pre-trained model brings its own)."""
    valid: float = 0.15
    """Share of the texts used for validation."""
    test: float = 0.15
    """Share of the texts used for testing."""

    def read(self) -> Labelled:
        """Texts, classes and parts."""
        check_shares(self.valid, self.test)
        records = read_records(Path(self.path)) if self.path else chapters()
        names = tuple(sorted({record["label"] for _, record in records}))
        if len(names) < 2:
            raise Mistake(f"{self.path}: {len(names)} different labels; a classifier needs two or more")
        y = torch.tensor([names.index(record["label"]) for _, record in records])
        valid, test, train = split_by_class(y, (self.valid, self.test))
        parts = {"train": train, "valid": valid, "test": test}
        for part, rows in parts.items():
            if not len(rows):
                raise Mistake(f"{self.path}: {len(y)} texts leave none for {part}; give more, or other shares")
        return Labelled(
            [record["text"] for _, record in records],
            [record["text_b"] for _, record in records if "text_b" in record],
            y,
            names,
            torch.tensor([line for line, _ in records]),
            parts,
        )


def read_file(path: Path) -> str:
    """A UTF-8 file, or a mistake that names it."""
    if not path.is_file():
        raise Mistake(f"--data.path {path}: no such file")
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise Mistake(f"{path}: byte {error.start} is not UTF-8; save the file as UTF-8") from None


def read_objects(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Line number and object of every line of a .jsonl file that is not empty."""
    for number, line in enumerate(read_file(path).split("\n"), start=1):
        if line.strip():
            try:
                value = json.loads(line)
            except json.JSONDecodeError as error:
                raise Mistake(f"{path}, line {number}: {error.msg}; each line is one JSON object") from None
            if not isinstance(value, dict):
                raise Mistake(f"{path}, line {number}: a {type(value).__name__}, not a JSON object")
            yield number, value


def read_records(path: Path) -> list[tuple[int, dict[str, str]]]:
    """Line number and record (text, label and perhaps text_b) of every line."""
    lines = list(read_objects(path) if path.suffix in (".jsonl", ".json") else read_columns(path))
    if not lines:
        raise Mistake(f"{path} is empty; give texts and labels")
    expected = {"text", "label"} | ({"text_b"} & lines[0][1].keys())
    records = []
    for number, values in lines:
        if missing := sorted(expected - values.keys()):
            raise Mistake(f"{path}, line {number}: no {missing[0]!r}; each record needs {', '.join(sorted(expected))}")
        record = {name: str(values[name]) for name in expected}
        if not record["text"].strip():
            raise Mistake(f"{path}, line {number}: the text is empty; remove the line")
        records.append((number, record))
    return records


def read_columns(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """Line number and columns of a .tsv or .csv file; without a header the columns are text and label."""
    text = io.StringIO(read_file(path), newline="")
    if path.suffix == ".csv":
        reader = csv.reader(text)
    else:
        reader = csv.reader(text, delimiter="\t", quoting=csv.QUOTE_NONE)
    names: Sequence[str] = ("text", "label")
    for row in reader:
        if not any(row):
            continue
        if reader.line_num == 1 and {"text", "label"} <= set(row):
            names = row
            continue
        if len(row) != len(names):
            raise Mistake(f"{path}, line {reader.line_num}: {len(row)} fields, not {len(names)} ({', '.join(names)})")
        yield reader.line_num, dict(zip(names, row, strict=True))


def chapters() -> list[tuple[int, dict[str, str]]]:
    """Passages of the ten longest chapters that Python's help() carries; what appears in two of them is left out."""
    from pydoc_data.topics import topics

    found = [
        (" ".join(passage.split()), label)
        for name, label in CHAPTERS.items()
        for passage in re.split(r"\n\s*\n", topics.get(name, ""))
        if len(passage.strip()) >= 60
    ]
    times = Counter(passage for passage, _ in found)
    once = [(passage, label) for passage, label in found if times[passage] == 1]
    return [(i, {"text": passage, "label": label}) for i, (passage, label) in enumerate(once, start=1)]


def trim_padding(batch: Batch) -> Batch:
    """The batch without the columns that are padding in every row."""
    t = int(batch["mask"].any(dim=0).nonzero().amax()) + 1
    wide = batch["mask"].shape[1]
    return {name: x[:, :t] if x.dim() == 2 and x.shape[1] == wide else x for name, x in batch.items()}


class Trimmed(ByLength):
    """A shuffled stream of padded texts, those of similar length together, each batch as long as its longest text."""

    def __init__(self, arrays: Batch, group: int, batch: int, seed: int, rank: int = 0, world: int = 1):
        super().__init__(arrays, arrays["mask"].sum(1), group, batch, seed, rank, world)

    def __next__(self) -> Batch:
        return trim_padding(super().__next__())


class TrimmedInOrder(InOrder):
    """The same texts in the same order, each batch as long as its longest text."""

    def __iter__(self) -> Iterator[Batch]:
        return map(trim_padding, super().__iter__())
