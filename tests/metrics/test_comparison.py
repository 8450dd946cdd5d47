"""Rows compared."""

from __future__ import annotations

from descend.metrics.comparison import ascending, differences, wins


def test_rows() -> None:
    rows = {"a": [1.0, 2.0], "b": [3.0, 2.5]}
    assert differences(rows, 0, 1) == {"a": 1.0, "b": -0.5}
    assert wins(differences(rows, 0, 1)) == 1
    assert not ascending(rows)
    assert ascending({"a": [1.0, 2.0, 3.0]})
