"""What a reader of a report stumbles over: a date as a number, and one mistake shown eight times."""

from __future__ import annotations

from pathlib import Path

from descend.data.tables.dates import Moment
from descend.data.tables.source import Table
from descend.views.tables import describe_spread, show_columns
from descend.views.text_labels import SHOWN, choose_distinct


def test_a_date_is_shown_as_a_date(tmp_path: Path) -> None:
    rows = [f"2024-03-{1 + k % 28:02} 10:00,{k % 7},{k}.5" for k in range(60)]
    (tmp_path / "t.csv").write_text("\n".join(["when,size,fare", *rows]))
    (shown,) = [row for row in show_columns(Table(path=str(tmp_path / "t.csv"), target="fare").read()).content["rows"]
                if row[0] == "when"]  # fmt: skip
    assert shown[3].startswith("2024-03-1")
    assert shown[3].endswith(" days")
    assert "since 1970" in describe_spread(Moment("when", 0.0, 1e12, 1.0, False, ()))


def test_a_text_that_is_there_often_is_shown_once() -> None:
    assert choose_distinct([4, 2, 3, 0], ["b", "c", "a", "a", "a"]) == [4, 0]
    assert len(choose_distinct(range(20), list(range(20)))) == SHOWN
