"""Dates as inputs, compared with what `datetime` says of each of them."""

from __future__ import annotations

import json
import math
import random
from datetime import datetime, timedelta
from pathlib import Path

import pytest
import torch

from descend.data.tables.columns import Columns, Quantity, Target
from descend.data.tables.dates import WEEKDAYS, Elapsed, Moment, place_in
from descend.data.tables.records import Records
from descend.data.tables.source import Table
from descend.errors import Mistake
from tests.close import close

DRAWN = random.Random(0)
MOMENTS = [datetime(1960, 1, 1) + timedelta(seconds=DRAWN.randrange(80 * 365 * 86400)) for _ in range(200)]
TAKEN = [timedelta(seconds=DRAWN.randrange(60, 7200)) for _ in MOMENTS]


def records(moments: list[datetime], taken: list[timedelta] | None = None) -> Records:
    columns = {"pickup": [str(m) for m in moments]}
    if taken:
        columns["dropoff"] = [str(m + t) for m, t in zip(moments, taken, strict=True)]
    return Records(columns, list(range(2, 2 + len(moments))), "taxi.csv")


def test_every_input_is_what_the_calendar_says() -> None:
    table = records(MOMENTS)
    column = Moment.fit(table, "pickup")
    assert column.cycles == ("hour", "weekday", "month")
    x = dict(zip(column.inputs, column.encode(table).T, strict=True))
    seconds = torch.tensor([(m - datetime(1970, 1, 1)).total_seconds() for m in MOMENTS], dtype=torch.float64)
    close(x["pickup"], (seconds - seconds.mean()) / seconds.std(correction=0))
    hours = [m.hour + m.minute / 60 + m.second / 3600 for m in MOMENTS]
    for name, places, turns in (("hour", hours, 24), ("month", [m.month - 1 for m in MOMENTS], 12)):
        for way, function in (("sine", math.sin), ("cosine", math.cos)):
            expected = [function(2 * math.pi * place / turns) for place in places]
            torch.testing.assert_close(x[f"pickup: {name}, {way}"], torch.tensor(expected, dtype=torch.float64))
    for k, day in enumerate(WEEKDAYS):
        assert x[f"pickup: {day}"].tolist() == [float(m.weekday() == k) for m in MOMENTS]


def test_places_at_the_edges() -> None:
    """Midnight, the last second of a day, a leap day, and before 1970."""
    edges = [
        datetime(1970, 1, 1),
        datetime(2023, 12, 31, 23, 59, 59),
        datetime(2024, 2, 29),
        datetime(1969, 12, 31, 23),
    ]
    days = torch.tensor([(m - datetime(1970, 1, 1)).total_seconds() / 86400 for m in edges], dtype=torch.float64)
    assert place_in("weekday", days).tolist() == [m.weekday() for m in edges]
    assert place_in("month", days).tolist() == [m.month - 1 for m in edges]
    assert place_in("hour", days).mul(3600).round().tolist() == [0, 86399, 0, 82800]


def test_a_cycle_that_never_changes_has_no_input() -> None:
    plain = Records({"day": ["2024-05-06", "2024-05-13", "2024-05-20"]}, [2, 3, 4], "a.csv")
    assert Moment.fit(plain, "day").inputs == ["day"]  # three Mondays in May


def test_a_missing_date_has_no_place() -> None:
    gone = Records({"day": ["2024-05-06", "", "2024-06-18 12:00"]}, [2, 3, 4], "a.csv")
    column = Moment.fit(gone, "day")
    x = column.encode(gone)
    assert column.inputs[:2] == ["day", "day is missing"]
    assert x[1, 1:].tolist() == [1.0] + [0.0] * (len(column.inputs) - 2)
    assert x[0, 1] == 0


def test_two_dates_give_the_time_between_them() -> None:
    """Trips of an hour within 80 years: in the difference of two float32 inputs they would be lost."""
    table = records(MOMENTS, TAKEN)
    columns = Columns.fit(table, {"pickup": "date", "dropoff": "date"}, Target("y"), 10, "zeros", "train")
    assert columns.inputs[-1] == "hours from pickup to dropoff"
    hours = torch.tensor([t.total_seconds() / 3600 for t in TAKEN], dtype=torch.float64)
    close(columns.encode(table)[:, -1], ((hours - hours.mean()) / hours.std(correction=0)).float())
    with pytest.raises(Mistake, match="has no column 'dropoff', which the model learned from"):
        columns.encode(records(MOMENTS))
    same = records(MOMENTS, [timedelta(hours=1)] * len(MOMENTS))
    assert Elapsed.fit(same, "pickup", "dropoff") is None


def test_saved_and_read_and_the_dates_of_earlier_versions(tmp_path: Path) -> None:
    table = records(MOMENTS, TAKEN)
    columns = Columns.fit(table, {"pickup": "date", "dropoff": "date"}, Target("y"), 10, "zeros", "train")
    columns.save(tmp_path)
    assert Columns.read(tmp_path) == columns
    old = {"name": "pickup", "kind": "date", "median": 1.0, "mean": 2.0, "std": 4.0, "gaps": False}
    target = {"name": "y", "labels": [], "kind": "number", "mean": 0.0, "std": 1.0}
    (tmp_path / "columns.json").write_text(json.dumps({"columns": [old], "target": target}))
    read = Columns.read(tmp_path)
    assert read.columns == (Quantity("pickup", "date", 1.0, 2.0, 4.0, False),)
    assert read.encode(Records({"pickup": ["1970-01-11"]}, [2], "a.csv")).tolist() == [[2.0]]


def test_a_table_of_trips_and_its_identifier(tmp_path: Path) -> None:
    order = list(range(1000, 1200))
    random.Random(1).shuffle(order)
    rows = [f"{i},{m},{m + t},{t.total_seconds()}" for i, m, t in zip(order, MOMENTS, TAKEN, strict=True)]
    (tmp_path / "taxi.csv").write_text("\n".join(["tripId,pickup,dropoff,fare", *rows]))
    splits = Table(path=str(tmp_path / "taxi.csv"), target="fare").read()
    assert splits.left_out == {"tripId": "all different, an identifier by its name"}
    torch.testing.assert_close(splits.train.x[:, -1], splits.train.y)
