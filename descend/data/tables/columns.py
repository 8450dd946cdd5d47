"""The columns of a table as a model sees them: fitted on training records, saved beside the weights as columns.json.

    number, date, truth value   (v − μ) / σ; a gap becomes the median, and a second input says that it was one
    category                    one-hot of the values seen in training; a gap is a value of its own
    target                      classes 0..K−1 by name, or (v − μ) / σ

A date counts as days, a truth value as 0 or 1. The second input exists only where the training records have gaps.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from descend.data.tables.encoding import OneHot, Unknown
from descend.data.tables.records import Records
from descend.data.tables.scaling import Part, Standardize, only_training
from descend.errors import Mistake
from descend.weights.folder import write_json
from descend.weights.layout import read_json

FILE = "columns.json"
Kind = Literal["number", "date", "truth", "category"]
MISSING = frozenset({"", "na", "n/a", "nan", "null", "?"})
NO_NUMBER = MISSING | {"none", "-"}  # these may be the name of a class, but among numbers they are gaps
THOUSANDS = re.compile(r"[-+]?\d{1,3}(,\d{3})+(\.\d*)?")
TRUTHS = ({"true": 1.0, "false": 0.0}, {"yes": 1.0, "no": 0.0}, {"t": 1.0, "f": 0.0}, {"y": 1.0, "n": 0.0})
NEARLY = 0.9  # a column of which this share are numbers is one of numbers with errors in it
TEXT = 0.5  # a column with more different values than this share of its records is no category
FEW_VALUES = 20  # up to this many different values a column of text is a category, however short the table
GAP = "(missing)"
DAY = 86400.0


def is_missing(text: str, kind: Kind = "category") -> bool:
    """A gap in a column of this kind."""
    return text.lower() in (MISSING if kind == "category" else NO_NUMBER)


def number_of(text: str, decimal_comma: bool = False) -> float | None:
    """The finite number that a text means (12, -1e3, 1,234.5; in a file without commas between fields 3,5), or None."""
    try:
        return finite(text)
    except ValueError:
        pass
    try:
        if decimal_comma:
            return finite(text.replace(",", ".")) if text.count(",") == 1 and "." not in text else None
        return finite(text.replace(",", "")) if THOUSANDS.fullmatch(text) else None
    except ValueError:
        return None


def finite(text: str) -> float | None:
    value = float(text)
    return value if math.isfinite(value) and "_" not in text else None


def plain_numbers(texts: Sequence[str]) -> Tensor | None:
    """The numbers of a whole column at once, where every text is a plain finite number; else None."""
    try:
        values = np.array(texts, dtype=np.str_).astype(np.float64)
    except ValueError:
        return None
    return torch.from_numpy(values) if np.isfinite(values).all() and not any("_" in t for t in texts) else None


def days_of(text: str) -> float | None:
    """Days since 1970 of an ISO date or time (2024-05-31, 2024-05-31 12:00), or None."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return (moment.replace(tzinfo=None) - datetime(1970, 1, 1)).total_seconds() / DAY if "-" in text else None


def truth_of(text: str) -> float | None:
    """1 or 0 of true/false, yes/no, t/f, y/n, or None."""
    return next((table[text.lower()] for table in TRUTHS if text.lower() in table), None)


def value_of(text: str, kind: Kind, decimal_comma: bool = False) -> float | None:
    """The number of a text in a column of this kind."""
    if kind == "number":
        return number_of(text, decimal_comma)
    return days_of(text) if kind == "date" else truth_of(text)


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
            left_out[name] = f"free text or names: {len(values)} different values in {len(there)} records"
        elif kind == "number" and counts_records([text for text, _ in there], len(records.lines)):
            left_out[name] = "counts the records"
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
    """A column of numbers, dates or truth values."""

    name: str
    kind: Kind
    median: float
    mean: float
    std: float
    gaps: bool
    """The training records had missing values, so a second input marks them."""

    @classmethod
    def fit(cls, records: Records, name: str, kind: Kind) -> Quantity:
        v = quantities(records, name, kind)
        there = v[~v.isnan()]
        if not len(there):
            raise Mistake(f"{records.where}, column {name!r}: no training record has a value; use --data.drop {name}")
        median = float(there.median())
        scale = Standardize.fit(v.nan_to_num(nan=median)[:, None], "train")
        return cls(name, kind, median, float(scale.mean[0]), float(scale.std[0]), bool(v.isnan().any()))

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
        return cls(name, (), kind, float(scale.mean[0]), float(scale.std[0]))

    def encode(self, records: Records) -> Tensor:
        """Classes (n), or standardized numbers (n)."""
        if self.labels:
            return OneHot(self.labels, "refuse").index(records.columns[self.name])
        return ((quantities(records, self.name, self.kind) - self.mean) / self.std).float()


@dataclass(frozen=True)
class Columns:
    """All that turns a record into a model's input, and the model's output into an answer."""

    columns: tuple[Quantity | Category, ...]
    target: Target

    @classmethod
    def fit(
        cls, records: Records, kinds: dict[str, Kind], target: Target, most: int, unknown: Unknown, part: Part
    ) -> Columns:
        """From training records only."""
        only_training(part, "the table of columns")
        fitted = tuple(
            Category.fit(records, name, most, unknown) if kind == "category" else Quantity.fit(records, name, kind)
            for name, kind in kinds.items()
        )
        return cls(fitted, target)

    @property
    def inputs(self) -> list[str]:
        """What each number of x is."""
        return [place for column in self.columns for place in column.inputs]

    def encode(self, records: Records) -> Tensor:
        """Records -> x (n, inputs); other columns are ignored, a missing one is named."""
        for column in self.columns:
            if column.name not in records.columns:
                raise Mistake(f"{records.where} has no column {column.name!r}, which the model learned from; add it")
        return torch.cat([column.encode(records) for column in self.columns], 1).float()

    def save(self, folder: Path) -> None:
        """columns.json beside the weights."""
        write_json(Path(folder) / FILE, {"columns": [asdict(c) for c in self.columns], "target": asdict(self.target)})

    @classmethod
    def read(cls, folder: Path) -> Columns:
        """What `save` wrote."""
        path = Path(folder) / FILE
        saved = read_json(path)
        try:
            target = Target(**{**saved["target"], "labels": tuple(saved["target"]["labels"])})
            return cls(tuple(_column(c) for c in saved["columns"]), target)
        except (KeyError, TypeError) as error:
            raise Mistake(f"{path} lacks {error}; it was not written by a training run") from None


def _column(saved: dict[str, Any]) -> Quantity | Category:
    return Category(**{**saved, "values": tuple(saved["values"])}) if "values" in saved else Quantity(**saved)


def quantities(records: Records, name: str, kind: Kind) -> Tensor:
    """The numbers of a column (n), nan where they are missing; a text that means none is named by its line."""
    if kind == "number" and (plain := plain_numbers(records.columns[name])) is not None:
        return plain
    found = []
    for text, line in zip(records.columns[name], records.lines, strict=True):
        value = math.nan if is_missing(text, kind) else value_of(text, kind, records.decimal_comma)
        if value is None:
            raise Mistake(f"{records.where}, line {line}, column {name!r}: {text!r} is not a {kind}; correct it")
        found.append(value)
    return torch.tensor(found, dtype=torch.float64)


def name_gaps(records: Records, name: str) -> list[str]:
    """The texts of a column, gaps under one name."""
    return [GAP if is_missing(text) else text for text in records.columns[name]]
