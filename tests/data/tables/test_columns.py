"""Texts to numbers, and the table of columns that goes with a model."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from descend.data.tables.columns import Columns, Target
from descend.data.tables.dates import WEEKDAYS
from descend.data.tables.records import Records
from descend.data.tables.values import days_of, number_of, truth_of
from descend.errors import Mistake
from tests.close import close

RECORDS = Records(
    {
        "size": ["1", "2", "", "4"],
        "colour": ["red", "blue", "red", "NA"],
        "sold": ["2024-01-01", "2024-01-02", "2024-01-04", "2024-01-05 12:00"],
        "new": ["true", "False", "true", "true"],
        "y": ["1.5", "2.5", "3.5", "4.5"],
    },
    [2, 3, 4, 5],
    "own.csv",
)
KINDS = {"size": "number", "colour": "category", "sold": "date", "new": "truth"}


def fitted(unknown: str = "zeros") -> Columns:
    target = Target.fit("y", RECORDS, False, "train")
    return Columns.fit(RECORDS, KINDS, target, 10, unknown, "train")  # type: ignore[arg-type]


def test_texts() -> None:
    assert number_of("1e3") == 1000
    assert number_of("3,5") is None
    assert [number_of(t) for t in ("1,234.5", "-12,345", "1,23")] == [1234.5, -12345, None]
    assert number_of("3,5", decimal_comma=True) == 3.5
    assert [number_of(t) for t in ("inf", "nan", "1_000", "abc", "")] == [None] * 5
    assert days_of("1970-01-02") == 1
    assert days_of("1970-01-02 12:00") == 1.5
    assert [days_of(t) for t in ("20240101", "01/02/2024", "x")] == [None] * 3
    assert (truth_of("Yes"), truth_of("f"), truth_of("1")) == (1.0, 0.0, None)


def test_encoding() -> None:
    columns = fitted()
    assert columns.inputs == [
        "size", "size is missing", "colour = (missing)", "colour = blue", "colour = red",
        "sold", "sold: hour, sine", "sold: hour, cosine", *(f"sold: {day}" for day in WEEKDAYS), "new",
    ]  # fmt: skip
    x = columns.encode(RECORDS)
    size = torch.tensor([1.0, 2.0, 2.0, 4.0])
    close(x[:, 0], (size - size.mean()) / size.std(correction=0))
    assert x[:, 1].tolist() == [0, 0, 1, 0]
    assert x[:, 2:5].tolist() == [[0, 0, 1], [0, 1, 0], [0, 0, 1], [1, 0, 0]]
    days = torch.tensor([0.0, 1.0, 3.0, 4.5])
    close(x[:, 5], (days - days.mean()) / days.std(correction=0))
    y = columns.target.encode(RECORDS)
    close(columns.target.mean + columns.target.std * y, torch.tensor([1.5, 2.5, 3.5, 4.5]))


def test_saved_and_read(tmp_path: Path) -> None:
    columns = fitted()
    columns.save(tmp_path)
    assert Columns.read(tmp_path) == columns
    classes = Columns((), Target("kind", ("a", "b"), "category"))
    classes.save(tmp_path)
    assert Columns.read(tmp_path) == classes
    (tmp_path / "columns.json").write_text("{}")
    with pytest.raises(Mistake, match="lacks 'target'"):
        Columns.read(tmp_path)


def test_new_records() -> None:
    """A gap where training had none, an unknown category, a column that is not there, a text that is no number."""
    new = Records({"colour": ["green"], "size": ["3"], "sold": [""], "new": ["no"], "more": ["x"]}, [2], "new.csv")
    columns = fitted()
    x = columns.encode(new)
    assert x[0, 2:5].tolist() == [0, 0, 0]
    assert x.isfinite().all()
    with pytest.raises(Mistake, match=r"new\.csv, line 2, column 'colour': 'green' was not seen in training"):
        fitted("refuse").encode(new)
    with pytest.raises(Mistake, match=r"new\.csv has no column 'size'"):
        columns.encode(Records({"colour": ["red"]}, [2], "new.csv"))
    with pytest.raises(Mistake, match="line 2, column 'size': 'big' is not a number"):
        columns.encode(Records({**new.columns, "size": ["big"]}, [2], "new.csv"))


def test_statistics_are_refused_on_other_parts() -> None:
    with pytest.raises(Mistake, match="leaks"):
        Columns.fit(RECORDS, {}, Target("y"), 10, "zeros", "valid")
    with pytest.raises(Mistake, match="leaks"):
        Target.fit("y", RECORDS, False, "test")
