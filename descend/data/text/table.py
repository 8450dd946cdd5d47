"""Tables of labelled texts: which column is the text, which the label, and whether the first line names them.

    header     words that no later record has in the same column, one of them a usual name or much shorter than a text
    label      the column of that name, or the only one with few different values
    text       the column of that name, or the one with the most letters whose values seldom recur
    left out   the others (an identifier, a date): named, with the reason

Flags decide instead where they are given: a column by its name, or by its number from 1. What was decided is told in
the run's facts. A "label" with nearly as many values as there are records stops the run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import Any

from descend.data.reading import read_objects, read_records, read_rows, show
from descend.errors import Mistake, nearest

TEXT_NAMES = ("text", "review", "sentence", "tweet", "message", "comment", "content", "body", "document")
LABEL_NAMES = ("label", "sentiment", "class", "category", "target", "polarity", "topic")
SECOND = "text_b"
PARTS = frozenset({"train", "training", "valid", "val", "validation", "dev", "test"})
FEW = 20  # up to this many different values are few, however short the file
SHARE = 0.02  # of the records: more different values than this are many
NAME_LENGTH, NAME_WORDS = 40, 3  # a column's name is no longer
ENOUGH = 10  # records that tell a header without a usual name from a record
LOOKED_AT = 1000  # values whose letters are counted
SAMPLED = 20_000  # records that are looked at to tell a header


@dataclass(frozen=True)
class Wanted:
    """Columns by name or number; empty: found by content (the group: none)."""

    text: str = ""
    label: str = ""
    group: str = ""


@dataclass(frozen=True)
class TextTable:
    """The records of a file, by column; `names` are numbers from 1 where there is no header."""

    where: str
    names: tuple[str, ...]
    lines: list[int]
    rows: list[dict[str, Any]]
    header: bool = True

    def column(self, name: str) -> list[str]:
        """The texts of a column that every record must have."""
        for line, row in zip(self.lines, self.rows, strict=True):
            if name not in row:
                raise Mistake(f"{self.where}, line {line}: no {name!r}, which the other records have; add it")
            if not isinstance(row[name], str | int | float):
                raise Mistake(f"{self.where}, line {line}: {name!r} is not a text; correct the line")
        return [str(row[name]) for row in self.rows]

    def look(self, name: str) -> Look:
        """What a column holds."""
        values = [str(row[name]).strip() for row in self.rows if isinstance(row.get(name), str | int | float)]
        different = set(values)
        sample = values[:: -(-len(values) // LOOKED_AT) or 1]
        letters = [sum(map(str.isalpha, value)) for value in sample if value]
        few = {value.lower() for value in different} if len(different) <= FEW else set()
        return Look(len(self.rows), len(different), sum(letters) / max(len(letters), 1), few)

    def call(self, name: str) -> str:
        """A column as people name it."""
        return name if self.header else f"column {name}"

    def resolve(self, wanted: str, flag: str) -> str:
        """The column that a flag names."""
        if wanted in self.names or not wanted:
            return wanted
        if wanted.isdecimal() and 1 <= int(wanted) <= len(self.names):
            return self.names[int(wanted) - 1]
        known = ", ".join(self.names) if self.header else f"1 to {len(self.names)}, without names"
        raise Mistake(
            f"{flag} {wanted}: {self.where} has no such column.{nearest(wanted, self.names)} Columns: {known}"
        )


@dataclass(frozen=True)
class Look:
    """A column at a glance: records, different values, letters of a value."""

    records: int
    different: int
    letters: float
    values: set[str]
    """In small letters; none where they are many."""

    @property
    def recurs(self) -> bool:
        """Values come twice or more on average."""
        return 2 * self.different <= self.records

    @property
    def few(self) -> bool:
        """As many different values as classes have, and no parts of the data."""
        many = max(FEW, SHARE * self.records)
        parts = bool(self.values) and self.values <= PARTS
        return 2 <= self.different <= many and self.recurs and not parts

    def explain(self) -> str:
        """Why a column that is neither text nor label is left out."""
        if self.different == self.records:
            return "all different"
        if self.different <= 1:
            return f"always {next(iter(self.values))!r}" if self.values else "empty"
        return f"{self.different:,} different values"


@dataclass(frozen=True)
class TextRecords:
    """Texts with labels; second texts and groups where there are such columns; lines of the file."""

    texts: list[str]
    labels: list[str]
    lines: list[int]
    seconds: list[str] = field(default_factory=list)
    groups: list[str] = field(default_factory=list)
    facts: dict[str, str] = field(default_factory=dict)
    """Which columns were taken, as a run says it."""
    columns: Wanted = field(default_factory=Wanted)
    """The same as flags."""

    @cached_property
    def keys(self) -> list[tuple[str, ...]]:
        """What makes two records the same to a reader: words apart from case and spaces."""
        sides = (self.texts, self.seconds) if self.seconds else (self.texts,)
        return [tuple(" ".join(text.lower().split()) for text in texts) for texts in zip(*sides, strict=True)]


def read_text_table(path: Path, wanted: Wanted) -> TextRecords:
    """The texts and labels of a .jsonl, .csv or .tsv file."""
    table = open_table(path, wanted)
    found = choose_columns(table, wanted)
    texts, labels = table.column(found.text), table.column(found.label)
    for name, values in (("text", texts), ("label", labels)):
        if (empty := next((i for i, value in enumerate(values) if not value.strip()), None)) is not None:
            raise Mistake(f"{table.where}, line {table.lines[empty]}: the {name} is empty; remove the line")
    check_labels(table, found, labels)
    return TextRecords(
        texts,
        labels,
        table.lines,
        table.column(SECOND) if SECOND in table.names else [],
        table.column(found.group) if found.group else [],
        describe_columns(table, found),
        found,
    )


def open_table(path: Path, wanted: Wanted) -> TextTable:
    """The records of a file, before anything is chosen."""
    kind = Path(path.stem).suffix if path.suffix == ".gz" else path.suffix
    if kind in (".jsonl", ".json"):
        objects = list(read_objects(path))
        if not objects:
            raise Mistake(f"{show(path)} is empty; give texts and labels")
        return TextTable(show(path), tuple(objects[0][1]), [n for n, _ in objects], [values for _, values in objects])
    found = [(number, row) for number, row in read_rows(path, find_separator(path, kind)) if any(map(str.strip, row))]
    if not found:
        raise Mistake(f"{show(path)} is empty; give texts and labels")
    first = [cell.strip() for cell in found[0][1]]
    header = is_header(first, [row for _, row in found[1 : SAMPLED + 1]], wanted)
    names = tuple((header and cell) or str(j) for j, cell in enumerate(first, start=1))
    if len(set(names)) < len(names):
        raise Mistake(f"{show(path)}, line {found[0][0]}: two columns have the same name; rename one")
    rows = found[1:] if header else found
    if not rows:
        raise Mistake(f"{show(path)} has a header but no records; add some")
    for number, row in rows:
        if len(row) != len(names):
            told = f"{len(row)} fields, not {len(names)}" + (f" ({', '.join(names)})" if header else "")
            raise Mistake(f"{show(path)}, line {number}: {told}; correct the line")
    records: list[dict[str, Any]] = [dict(zip(names, row, strict=True)) for _, row in rows]
    return TextTable(show(path), names, [number for number, _ in rows], records, header)


def find_separator(path: Path, kind: str) -> str:
    """Commas in a .csv file, if its first line has any; else tabs."""
    if kind != ".csv":
        return "\t"
    first = next((line for line in read_records(path).split("\n") if line.strip()), "")
    return next((mark for mark in ",;\t|" if mark in first), ",")


def is_header(first: Sequence[str], rest: Sequence[Sequence[str]], wanted: Wanted) -> bool:
    """Whether the first line names the columns."""
    flags = {wanted.text, wanted.label, wanted.group} - {""}
    if {"text", "label"} <= set(first) or any(flag in first and not flag.isdecimal() for flag in flags):
        return True
    columns = [[row[j].strip() for row in rest if j < len(row)] for j in range(len(first))]
    if not rest or not all(is_name(cell) and cell not in columns[j] for j, cell in enumerate(first) if cell):
        return False
    if any(cell.lower() in (*TEXT_NAMES, *LABEL_NAMES) for cell in first):
        return True
    if len(rest) < ENOUGH:  # a label may be the only one of its kind
        return False
    lengths = [median(map(len, column)) if column else 0 for column in columns]
    longest = lengths.index(max(lengths))
    return 2 * len(first[longest]) < lengths[longest]


def is_name(cell: str) -> bool:
    """Whether a field could be the name of a column: a few words, no number, no sentence."""
    number = cell.replace(".", "", 1).lstrip("+-").isdecimal()
    return not number and len(cell) <= NAME_LENGTH and len(cell.split()) <= NAME_WORDS and cell[-1] not in ".!?,;"


def choose_columns(table: TextTable, wanted: Wanted) -> Wanted:
    """The columns that the flags name, and what the content says of the others."""
    label, group = table.resolve(wanted.label, "--data.label"), table.resolve(wanted.group, "--data.group")
    text = table.resolve(wanted.text, "--data.text") or find_text(table, {label, group, SECOND})
    return Wanted(text, label or find_label(table, {text, group, SECOND}), group)


def find_text(table: TextTable, taken: set[str]) -> str:
    """The column with a usual name, or the one of the longest texts."""
    free = {name: table.look(name) for name in table.names if name not in taken}
    named = [name for name in free if name.lower() in TEXT_NAMES and not free[name].few]
    if not free:
        raise Mistake(f"{table.where}, line {table.lines[0]}: no 'text'; each record needs a text and a label")
    if "text" in free:
        return "text"
    if len(named) == 1:
        return named[0]
    first = next(iter(free))
    return max(free, key=lambda name: (not free[name].recurs, free[name].letters, name == first))


def find_label(table: TextTable, taken: set[str]) -> str:
    """The column called label, or the one with few different values."""
    if "label" in table.names:
        return "label"
    free = {name: table.look(name) for name in table.names if name not in taken}
    few = [name for name, look in free.items() if look.few]
    named = [name for name in few if name.lower() in LABEL_NAMES]
    for found in (named, few, list(free)):
        if len(found) == 1:
            return found[0]
    if not free:
        raise Mistake(f"{table.where}, line {table.lines[0]}: no 'label'; each record needs a text and a label")
    told = ", ".join(f"{table.call(name)} ({free[name].different:,} values)" for name in few or free)
    which = "several columns could be the label" if few else "no column has as few values as a label"
    raise Mistake(f"{table.where}: {which}: {told}; name it with --data.label")


def check_labels(table: TextTable, found: Wanted, labels: Sequence[str]) -> None:
    """Stop where the labels are hardly classes."""
    different = len(set(labels))
    if different > max(FEW, len(labels) / 2):
        raise Mistake(
            f"{table.where}: {different:,} different labels in {len(labels):,} records: is --data.label right? "
            f"It is {table.call(found.label)}, the text is {table.call(found.text)}"
        )


def describe_columns(table: TextTable, found: Wanted) -> dict[str, str]:
    """What was taken and what was left out."""
    without = "" if table.header else " (there is no header)"
    said = {"text column": table.call(found.text) + without, "label column": table.call(found.label) + without}
    reasons = {found.group: "what records are grouped by"} if found.group else {}
    unused = [name for name in table.names if name not in (found.text, found.label, found.group, SECOND)]
    reasons |= {name: table.look(name).explain() for name in unused}
    if reasons:
        said["left out"] = "; ".join(f"{table.call(name)} ({why})" for name, why in reasons.items())
    return said
