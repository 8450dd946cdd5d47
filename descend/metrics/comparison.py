"""Tables of scores compared row by row: differences, wins, order.

    difference = second − first of each row       a win is a difference above 0

DeepSeek's ablations (DLN): multi-head beats grouped and multi-query attention in all four rows; latent attention beats
multi-head attention in seven of eight.

Systems: multi-head-latent-attention
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

Rows = Mapping[str, Sequence[float]]


def differences(rows: Rows, first: int, second: int) -> dict[str, float]:
    """Column `second` minus column `first` of each row."""
    return {name: row[second] - row[first] for name, row in rows.items()}


def wins(difference: Mapping[str, float]) -> int:
    """In how many rows the second column is higher."""
    return sum(value > 0 for value in difference.values())


def ascending(rows: Rows) -> bool:
    """Whether every row grows from column to column."""
    return all(a < b for row in rows.values() for a, b in pairwise(row))
