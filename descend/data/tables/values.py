"""What the texts of a table mean as numbers: plain numbers, dates, truth values, and gaps.

number      12, -1e3, 1,234.5; in a file without commas between fields also 3,5
date        ISO: 2024-05-31, 2024-05-31 12:00, counted in days since 1970
truth       true/false, yes/no, t/f, y/n as 1 and 0
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from descend.data.tables.records import Records
from descend.data.tables.scaling import Standardize
from descend.errors import Mistake

Kind = Literal["number", "date", "truth", "category"]
MISSING = frozenset({"", "na", "n/a", "nan", "null", "?"})
NO_NUMBER = MISSING | {"none", "-"}  # these may be the name of a class, but among numbers they are gaps
THOUSANDS = re.compile(r"[-+]?\d{1,3}(,\d{3})+(\.\d*)?")
TRUTHS = ({"true": 1.0, "false": 0.0}, {"yes": 1.0, "no": 0.0}, {"t": 1.0, "f": 0.0}, {"y": 1.0, "n": 0.0})
LONGEST = 64  # characters of a plain number
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
    if max(map(len, texts), default=0) > LONGEST:  # numpy would give every text the room of the longest
        return None
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


@dataclass(frozen=True)
class Scale:
    """Median, mean and deviation of the training records' numbers, and whether some were missing."""

    median: float
    mean: float
    std: float
    gaps: bool

    @classmethod
    def fit(cls, v: Tensor, where: str, name: str) -> Scale:
        """Of numbers (n), nan where they are missing."""
        there = v[~v.isnan()]
        if not len(there):
            raise Mistake(f"{where}, column {name!r}: no training record has a value; use --data.drop {name}")
        median = float(there.median())
        scale = Standardize.fit(v.nan_to_num(nan=median)[:, None], "train")
        check_scale(scale, where, name)
        return cls(median, float(scale.mean[0]), float(scale.std[0]), bool(v.isnan().any()))


def check_scale(scale: Standardize, where: str, name: str) -> None:
    """Refuse numbers whose mean or deviation is more than a number can hold."""
    if not (scale.mean.isfinite().all() and scale.std.isfinite().all()):
        raise Mistake(f"{where}, column {name!r}: the numbers are too large to be added up; scale them down")
