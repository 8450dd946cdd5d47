"""The columns of a table as a model sees them: fitted on training records, saved beside the weights as columns.json.

    number, truth value         (v − μ) / σ; a gap becomes the median, and a second input says that it was one
    date                        days likewise, and its place in the day, the week and the year; two dates: also the
                                time from one to the other (see `dates`)
    category                    one-hot of the values seen in training; a gap is a value of its own
    target                      classes 0..K−1 by name, or (v − μ) / σ

A truth value counts as 0 or 1. The second input exists only where the training records have gaps.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from descend.data.tables.dates import Elapsed, Moment
from descend.data.tables.encoding import OneHot, Unknown
from descend.data.tables.records import Records
from descend.data.tables.scaling import Part, Standardize, only_training
from descend.data.tables.values import (
    TRUTHS,
    Kind,
    Scale,
    check_scale,
    days_of,
    is_missing,
    number_of,
    plain_numbers,
    quantities,
    value_of,
)
from descend.errors import Mistake
from descend.files import field, items, read_json, write_json
from descend.weights.layout import make_part

FILE = "columns.json"
NEARLY = 0.9  # a column of which this share are numbers is one of numbers with errors in it
TEXT = 0.5  # a column with more different values than this share of its records is no category
FEW_VALUES = 20  # up to this many different values a column of text is a category, however short the table
GAP = "(missing)"
IDENTIFIER = re.compile(r"(?i:(^|[_\s.-])(id|uuid|guid|index)$|^\(index\)$|^unnamed: 0$)|[a-z]I[dD]$")


def schema_of(
    records: Records, names: Sequence[str], categories: Sequence[str]
) -> tuple[dict[str, Kind], dict[str, str]]:
    """The kind of every column that can be used, and why the others cannot."""
    kinds: dict[str, Kind] = {}
    left_out: dict[str, str] = {}
    for name in names:
        there = [(t, line) for t, line in zip(records.columns[name], records.lines, strict=True) if not is_missing(t)]
        values = {text for text, _ in there}
        if len(values) < 2 and len(there) == len(records.lines):
            left_out[name] = f"always {there[0][0]!r}" if there else "empty"
        elif not there:
            left_out[name] = "empty"
        elif name in categories:
            kinds[name] = "category"
        elif (kind := kind_of(there, name, records)) == "category" and len(values) > max(FEW_VALUES, TEXT * len(there)):
            told = f"{len(values):,} different values in {len(there):,} records"
            left_out[name] = f"free text or names: {'all different' if len(values) == len(there) else told}"
        elif kind == "number" and counts_records([text for text, _ in there], len(records.lines)):
            left_out[name] = "counts the records"
        elif kind == "number" and len(values) == len(there) > FEW_VALUES and IDENTIFIER.search(name):
            left_out[name] = "all different, an identifier by its name"
        else:
            kinds[name] = kind
    return kinds, left_out


def counts_records(texts: list[str], n: int) -> bool:
    """Whole numbers from 0 or 1 on that go up by one from record to record, as an index does."""
    return len(texts) == n > 2 and texts[0] in ("0", "1") and texts == [str(int(texts[0]) + i) for i in range(n)]


def kind_of(there: list[tuple[str, int]], name: str, records: Records) -> Kind:
    """What a column holds. One that is nearly all numbers (or dates) names the records that are not."""
    if any(all(text.lower() in table for text, _ in there) for table in TRUTHS):
        return "truth"
    if plain_numbers([text for text, _ in there]) is not None:
        return "number"
    words: dict[Kind, str] = {"number": "a number", "date": "a date such as 2024-05-31"}
    for kind, word in words.items():
        told = [(t, line) for t, line in there if not is_missing(t, kind)]
        wrong = [(t, line) for t, line in told if value_of(t, kind, records.decimal_comma) is None]
        if told and not wrong:
            return kind
        if len(wrong) <= (1 - NEARLY) * len(there):
            text, line = wrong[0]
            more = f" ({len(wrong)} such records)" if len(wrong) > 1 else ""
            raise Mistake(
                f"{records.where}, line {line}, column {name!r}: {text!r} is not {word}, as the others are{more}; "
                f"correct it, leave it empty, or use --data.categories {name}"
            )
    return "category"


@dataclass(frozen=True)
class Quantity:
    """A column of numbers or truth values; runs of earlier versions also have dates as days alone."""

    name: str
    kind: Kind
    median: float
    mean: float
    std: float
    gaps: bool
    """The training records had missing values, so a second input marks them."""

    @classmethod
    def fit(cls, records: Records, name: str, kind: Kind) -> Quantity:
        scale = Scale.fit(quantities(records, name, kind), records.where, name)
        return cls(name, kind, **asdict(scale))

    @property
    def inputs(self) -> list[str]:
        return [self.name, f"{self.name} is missing"] if self.gaps else [self.name]

    def encode(self, records: Records) -> Tensor:
        """(n, 1), or (n, 2) with the gaps."""
        v = quantities(records, self.name, self.kind)
        x = (v.nan_to_num(nan=self.median) - self.mean) / self.std
        return torch.stack([x, v.isnan().double()], 1) if self.gaps else x[:, None]


@dataclass(frozen=True)
class Category:
    """A column of names."""

    name: str
    values: tuple[str, ...]
    unknown: Unknown

    @classmethod
    def fit(cls, records: Records, name: str, most: int, unknown: Unknown) -> Category:
        return cls(name, OneHot.fit(name_gaps(records, name), "train", most).values, unknown)

    @property
    def inputs(self) -> list[str]:
        return [f"{self.name} = {value}" for value in self.values]

    def encode(self, records: Records) -> Tensor:
        """(n, number of values)"""
        column = name_gaps(records, self.name)
        hot = OneHot(self.values)
        strange = (hot.index(column) < 0).nonzero().flatten().tolist()
        if strange and self.unknown == "refuse":
            text, line = column[strange[0]], records.lines[strange[0]]
            raise Mistake(
                f"{records.where}, line {line}, column {self.name!r}: {text!r} was not seen in training; "
                f"correct it, or use --data.unknown zeros"
            )
        return hot(column).double()


Column = Quantity | Category | Moment | Elapsed


@dataclass(frozen=True)
class Target:
    """What is predicted: classes by name, or (when there are none) a number."""

    name: str
    labels: tuple[str, ...] = ()
    kind: Kind = "number"
    mean: float = 0.0
    std: float = 1.0

    @classmethod
    def fit(cls, name: str, records: Records, classes: bool, part: Part) -> Target:
        """Labels, or mean and deviation, of the training records."""
        only_training(part, "the target")
        texts = records.columns[name]
        if classes:
            labels = OneHot.fit(texts, part).values
            if len(labels) < 2:
                raise Mistake(f"{records.where}: every {name!r} is {labels[0]!r}; there is nothing to tell apart")
            whole = [number_of(label) for label in labels]
            in_order = [v for v in whole if v is not None]
            if len(in_order) == len(labels):  # 2 comes before 10
                labels = tuple(label for _, label in sorted(zip(in_order, labels, strict=True)))
            return cls(name, labels, "category")
        kind: Kind = "date" if all(days_of(t) is not None for t in texts) else "number"
        v = quantities(records, name, kind)
        scale = Standardize.fit(v[:, None], part)
        check_scale(scale, records.where, name)
        return cls(name, (), kind, float(scale.mean[0]), float(scale.std[0]))

    def encode(self, records: Records) -> Tensor:
        """Classes (n), or standardized numbers (n)."""
        if self.labels:
            return OneHot(self.labels, "refuse").index(records.columns[self.name])
        return ((quantities(records, self.name, self.kind) - self.mean) / self.std).float()


@dataclass(frozen=True)
class Columns:
    """All that turns a record into a model's input, and the model's output into an answer."""

    columns: tuple[Column, ...]
    target: Target

    @classmethod
    def fit(
        cls, records: Records, kinds: dict[str, Kind], target: Target, most: int, unknown: Unknown, part: Part
    ) -> Columns:
        """From training records only."""
        only_training(part, "the table of columns")
        fitted: list[Column] = []
        for name, kind in kinds.items():
            if kind == "category":
                fitted.append(Category.fit(records, name, most, unknown))
            else:
                fitted.append(Moment.fit(records, name) if kind == "date" else Quantity.fit(records, name, kind))
        dates = [name for name, kind in kinds.items() if kind == "date"]
        spans = [Elapsed.fit(records, since, until) for since, until in pairwise(dates)]
        return cls((*fitted, *(span for span in spans if span is not None)), target)

    @property
    def inputs(self) -> list[str]:
        """What each number of x is."""
        return [place for column in self.columns for place in column.inputs]

    def encode(self, records: Records) -> Tensor:
        """Records -> x (n, inputs); other columns are ignored, a missing one is named."""
        for column in self.columns:
            names = (column.since, column.until) if isinstance(column, Elapsed) else (column.name,)
            for name in names:
                if name not in records.columns:
                    raise Mistake(f"{records.where} has no column {name!r}, which the model learned from; add it")
        return torch.cat([column.encode(records) for column in self.columns], 1).float()

    def save(self, folder: Path) -> None:
        """columns.json beside the weights."""
        write_json(Path(folder) / FILE, {"columns": [asdict(c) for c in self.columns], "target": asdict(self.target)})

    @classmethod
    def read(cls, folder: Path) -> Columns:
        """What `save` wrote."""
        path = Path(folder) / FILE
        saved = read_json(path)
        target = field(saved, "target", dict, path)
        labels = tuple(items(target, "labels", str, path))
        columns = items(saved, "columns", dict, path)
        return cls(
            tuple(_column(column, f"{path}: columns[{at}]") for at, column in enumerate(columns)),
            make_part(Target, {**target, "labels": labels}, f"{path}: target"),
        )


def _column(saved: dict[str, Any], where: str) -> Column:
    if "values" in saved:
        return make_part(Category, {**saved, "values": tuple(items(saved, "values", str, where))}, where)
    if "cycles" in saved:
        return make_part(Moment, {**saved, "cycles": tuple(items(saved, "cycles", str, where))}, where)
    return make_part(Elapsed, saved, where) if "since" in saved else make_part(Quantity, saved, where)


def name_gaps(records: Records, name: str) -> list[str]:
    """The texts of a column, gaps under one name."""
    return [GAP if is_missing(text) else text for text in records.columns[name]]
