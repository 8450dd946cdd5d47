"""A table as text: what a CSV file holds before any of it means anything."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Records:
    """Columns of texts by name, the line of each record, and where they come from."""

    columns: dict[str, list[str]]
    lines: list[int]
    where: str
    decimal_comma: bool = False
    """The file is not separated by commas, so 3,5 may be a number."""

    def take(self, rows: Sequence[int]) -> Records:
        """Some of the records."""
        columns = {name: [column[i] for i in rows] for name, column in self.columns.items()}
        return Records(columns, [self.lines[i] for i in rows], self.where, self.decimal_comma)
