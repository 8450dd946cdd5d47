"""Tables: the user's CSV file, or one that is embedded; read, checked, cut into parts, and turned into numbers.

A CSV file has a header line. Its separator is found (comma, semicolon, tab or |), its columns' types are inferred from
the text (numbers, truth values, ISO dates, categories), and a record that does not fit is named by its line. The file
is cut into train, valid and test once and for all, independently of the run's seed; every statistic (medians, means,
categories) is taken from the training part and kept in `Columns`, which goes with the model.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor

from descend.data.images.labelled import check_shares, split_by_class
from descend.data.reading import parse_rows, read_records, show
from descend.data.streams.arrays import generator
from descend.data.streams.splits import describe_leaks, split_by_group
from descend.data.tables.columns import Columns, Target, schema_of
from descend.data.tables.encoding import Unknown
from descend.data.tables.records import Records
from descend.data.tables.values import Kind, is_missing, number_of
from descend.errors import Mistake, nearest
from descend.ranges import Fraction, Width

SEPARATORS = ",;\t|"
SHOWN = 20  # column names in a message
FEW = 20  # whole numbers with at most this many values are taken for classes


def read_csv(path: str | Path) -> Records:
    """The records of a CSV file, each with the line on which it ends."""
    return parse_csv(read_records(path), show(path))


def parse_csv(text: str, where: str) -> Records:
    """As `read_csv`, from the text itself."""
    first = next((line for line in text.split("\n") if line.strip()), "")
    separator = max(SEPARATORS, key=first.count)
    found = [(line, row) for line, row in parse_rows(text, where, separator) if any(field.strip() for field in row)]
    if not found:
        raise Mistake(f"{where} is empty; give a CSV file with a header line and records")
    lines, rows = [line for line, _ in found], [row for _, row in found]
    names = [name.strip() for name in rows[0]]
    names[0] = names[0] or "(index)"  # other programs write the row numbers without a name
    check_header(names, where, lines[0])
    for row, line in zip(rows, lines, strict=True):
        if len(row) != len(names):
            raise Mistake(
                f"{where}, line {line}: {len(row)} fields, but the header has {len(names)}; "
                f"correct the line (a field that holds {separator!r} needs quotes)"
            )
    columns = {name: [row[j].strip() for row in rows[1:]] for j, name in enumerate(names)}
    return Records(columns, lines[1:], where, decimal_comma=separator != ",")


def check_header(names: list[str], where: str, line: int) -> None:
    """The header must name every column once, and be no record."""
    if len(names) > 1 and all(number_of(name) is not None for name in names):
        raise Mistake(f"{where}, line {line} holds numbers where the column names should be; add a header line")
    for name, times in Counter(names).items():
        if not name:
            raise Mistake(f"{where}, line {line}: a column has no name; name every column")
        if times > 1:
            raise Mistake(f"{where}, line {line}: two columns are called {name!r}; rename one")


@dataclass(frozen=True)
class EncodedTable:
    """One part as numbers: x (n, inputs), y (n) classes or standardized numbers, and each record's line."""

    x: Tensor
    y: Tensor
    ids: Tensor

    def arrays(self) -> dict[str, Tensor]:
        return {"x": self.x, "y": self.y, "ids": self.ids}


@dataclass(frozen=True)
class TableSplits:
    """The three parts, and the table of columns that made them."""

    train: EncodedTable
    valid: EncodedTable
    test: EncodedTable
    columns: Columns
    left_out: dict[str, str]
    """Columns that are not used, and why."""
    leaks: dict[str, str] = field(default_factory=dict)
    """What is held out and in the training part too, as a run says it."""


@dataclass(frozen=True)
class Table:
    """Which table, what to predict, and how to read its columns."""

    path: str = ""
    """CSV file with a header line; empty: the embedded table."""
    target: str = ""
    """Column to predict; may be left out for an embedded table."""
    embedded: Literal["homes", "wine", "breast-cancer", "iris", "diabetes", "moons", "circles", "xor", "factory"] = (
        "homes"
    )
    """Table that is used without --data.path."""
    predict: Literal["auto", "classes", "numbers"] = "auto"
    """auto: classes for text, truth values and few whole numbers; else numbers."""
    drop: tuple[str, ...] = ()
    """Columns to leave out, e.g. an identifier."""
    categories: tuple[str, ...] = ()
    """Columns of numbers that are codes, not quantities."""
    group: str = ""
    """Column of what records belong to, e.g. a patient: all of a group go to the same part. It is no input."""
    unknown: Unknown = "zeros"
    """A category that training never saw: all its inputs are 0, or the record is refused."""
    most: Width = 50
    """Categories of a column that get an input; rarer ones are treated as unknown."""
    valid: Fraction = 0.15
    """Share of the records that selects the checkpoint."""
    test: Fraction = 0.15
    """Share held out for the final test."""
    drop_last: bool = False
    """Drop the incomplete last batch of an epoch; else its records start the next epoch's first batch."""

    def records(self) -> Records:
        """The table as text, with the target among its columns."""
        if self.path:
            return read_csv(self.path)
        from descend.data.tables.embedded import table  # here, since it may import scikit-learn

        return table(self.embedded)

    def named_target(self, records: Records) -> str:
        """The column to predict."""
        names = list(records.columns)
        if not self.target:
            if self.path:
                raise Mistake(f"--data.target: name the column to predict; {show(self.path)} has {list_names(names)}")
            return names[-1]
        return find_column(self.target, names, "--data.target")

    def read(self) -> TableSplits:
        """Read, check, cut, fit on the training part, encode all three."""
        check_shares(self.valid, self.test)
        if self.most < 1:
            raise Mistake(f"--data.most {self.most}: keep at least 1 category of a column")
        records = self.records()
        name = self.named_target(records)
        texts = complete(records, name, "category")
        drop = [find_column(column, records.columns, "--data.drop") for column in self.drop]
        categories = [find_column(column, records.columns, "--data.categories") for column in self.categories]
        group = find_column(self.group, records.columns, "--data.group") if self.group else ""
        kinds, left_out = schema_of(records, [c for c in records.columns if c not in (name, group, *drop)], categories)
        left_out |= {group: "what records are grouped by"} if group else {}
        if not kinds:
            raise Mistake(f"{records.where}: no column is left to predict {name!r} from; check --data.drop")
        classes = self.asks_classes(records, name, texts)
        if classes and len(set(texts)) > max(FEW, len(texts) / 2):
            told = f"{len(set(texts))} different values in {len(texts)} records"
            raise Mistake(f"{records.where}: {name!r} has {told}, too many for classes; use --data.predict numbers")
        if not classes:
            complete(records, name, "number")
        groups = records.columns[group] if group else None
        rows = split(texts if classes else None, len(texts), self.valid, self.test, groups)
        train = records.take(rows["train"])
        target = Target.fit(name, train, classes, "train")
        columns = Columns.fit(train, kinds, target, self.most, self.unknown, "train")
        parts = {part: encode(records.take(which), columns) for part, which in rows.items()}
        left_out |= dict.fromkeys(drop, "dropped by --data.drop")
        whole = list(zip(*(records.columns[column] for column in (*kinds, name)), strict=True))
        leaks = describe_leaks(whole, {part: torch.tensor(which) for part, which in rows.items()})
        return TableSplits(**parts, columns=columns, left_out=left_out, leaks=leaks)

    def asks_classes(self, records: Records, name: str, texts: list[str]) -> bool:
        """Classification or regression: asked for, or inferred from the target's values."""
        if self.predict != "auto":
            return self.predict == "classes"
        kind = schema_of(records, [name], [])[0].get(name, "category")
        if kind in ("truth", "category"):
            return True
        values = {number_of(text, records.decimal_comma) for text in texts}
        return kind == "number" and len(values) <= FEW and all(v is not None and v == round(v) for v in values)


def find_column(name: str, names: Iterable[str], flag: str) -> str:
    """The column of this name, or a mistake with the nearest."""
    names = list(names)
    if name not in names:
        raise Mistake(f"{flag} {name}: there is no such column.{nearest(name, names)} Columns: {list_names(names)}")
    return name


def list_names(names: Sequence[str]) -> str:
    """The first names, and how many more there are."""
    more = f" and {len(names) - SHOWN:,} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def complete(records: Records, name: str, kind: Kind) -> list[str]:
    """The target's texts; a record without one cannot teach or judge."""
    texts = records.columns[name]
    if not texts:
        raise Mistake(f"{records.where} has a header but no records; add some")
    gaps = [line for text, line in zip(texts, records.lines, strict=True) if is_missing(text, kind)]
    if gaps:
        many = f"{len(gaps)} records have" if len(gaps) > 1 else "a record has"
        raise Mistake(f"{records.where}, line {gaps[0]}: {many} no {name!r}; fill it in or delete the lines")
    return texts


def split(
    classes: list[str] | None, n: int, valid: float, test: float, groups: list[str] | None = None
) -> dict[str, list[int]]:
    """Rows of the three parts: whole groups, or every class in the same shares, or at random; the same for every seed
    of a run."""
    if groups is not None:
        pieces = split_by_group(groups, (test, valid))
    elif classes is None:
        order = torch.randperm(n, generator=generator(0))
        cuts = [round(n * test), round(n * (test + valid))]
        pieces = [piece.sort().values for piece in order.tensor_split(cuts)]
    else:
        labels = {label: k for k, label in enumerate(sorted(set(classes)))}
        pieces = split_by_class(torch.tensor([labels[c] for c in classes]), (test, valid))
    rows = {part: piece.tolist() for part, piece in zip(("test", "valid", "train"), pieces, strict=True)}
    for part, which in rows.items():
        if not which:
            raise Mistake(f"no record is left for the {part} part: {n} records are too few; give more")
    if classes is not None:
        taught = {classes[i] for i in rows["train"]}
        if untaught := sorted(set(classes) - taught):
            raise Mistake(f"class {untaught[0]!r} is too rare: none of its records is left to train on; give more")
    return rows


def encode(records: Records, columns: Columns) -> EncodedTable:
    """A part with its target, by the columns that the training part made."""
    return EncodedTable(columns.encode(records), columns.target.encode(records), torch.tensor(records.lines))


def read_labelled(path: str | Path, columns: Columns) -> EncodedTable:
    """Every record of a CSV file with its target, by the columns of a trained model."""
    records, target = read_csv(path), columns.target
    if target.name not in records.columns:
        raise Mistake(
            f"{records.where} has no column {target.name!r}, which the model predicts; add it to be judged by"
        )
    texts = complete(records, target.name, target.kind)
    if target.labels and (strange := [i for i, text in enumerate(texts) if text not in target.labels]):
        raise Mistake(
            f"{records.where}, line {records.lines[strange[0]]}: the model knows no {target.name} "
            f"{texts[strange[0]]!r}.{nearest(texts[strange[0]], target.labels)} Classes: {list_names(target.labels)}"
        )
    return encode(records, columns)
