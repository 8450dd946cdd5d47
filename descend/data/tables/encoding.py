"""Labels and categories as numbers.

    two classes    y± = 2 y₀₁ − 1        y₀₁ = (y± + 1) / 2
    K classes      one-hot e_y in {0, 1}^K, Σ_k y_k = 1        (MF: K × m, an example is a COLUMN; a network has rows)
    categories     value -> one-hot; the values are those of the training part

A category that training never saw is refused, or becomes a row of zeros: then it is not a known value, and the rest of
the record still counts.

Systems: label-and-categorical-encoding
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from descend.data.tables.scaling import Part, only_training
from descend.errors import Mistake, nearest

Unknown = Literal["zeros", "refuse"]


def to_signs(y: Tensor) -> Tensor:
    """{0, 1} -> {−1, +1}"""
    if not ((y == 0) | (y == 1)).all():
        raise Mistake(f"labels {y.unique().tolist()[:5]}: only 0 and 1 can become −1 and +1")
    return 2 * y - 1


def from_signs(y: Tensor) -> Tensor:
    """{−1, +1} -> {0, 1}"""
    if not (y.abs() == 1).all():
        raise Mistake(f"labels {y.unique().tolist()[:5]}: only −1 and +1 can become 0 and 1")
    return (y + 1) // 2


def one_hot_columns(y: Tensor, classes: int) -> Tensor:
    """Classes y (m) -> (K, m): column i is e_{y_i}."""
    if len(y) and not 0 <= int(y.min()) <= int(y.max()) < classes:
        raise Mistake(f"class {int(y.max())} does not fit 0..{classes - 1}; correct the labels")
    return (torch.arange(classes)[:, None] == y).to(torch.get_default_dtype())


def from_one_hot_columns(columns: Tensor) -> Tensor:
    """(K, m) -> classes (m)."""
    return columns.argmax(dim=0)


@dataclass(frozen=True)
class OneHot:
    """One column of categories as K numbers, of which one is 1."""

    values: tuple[str, ...]
    unknown: Unknown = "zeros"

    @classmethod
    def fit(cls, column: Sequence[str], part: Part, most: int = 0, unknown: Unknown = "zeros") -> OneHot:
        """The values of the training part, sorted; of more than `most` values (0: any number), the most frequent."""
        only_training(part, "one-hot encoding")
        counts = Counter(column)
        frequent = sorted(counts, key=lambda value: (-counts[value], value))[: most or None]
        return cls(tuple(sorted(frequent)), unknown)

    def index(self, column: Sequence[str]) -> Tensor:
        """The place of each value (n); −1 where it is unknown."""
        places = {value: k for k, value in enumerate(self.values)}
        found = torch.tensor([places.get(value, -1) for value in column], dtype=torch.long)
        if self.unknown == "refuse" and (found < 0).any():
            row = int((found < 0).nonzero()[0])
            raise Mistake(
                f"row {row}: {column[row]!r} is not among the {len(self.values)} known values."
                f"{nearest(column[row], self.values)} Correct it, or encode unknown values as zeros"
            )
        return found

    def __call__(self, column: Sequence[str]) -> Tensor:
        """Values (n) -> (n, K); rows sum to 1, or to 0 where a value is unknown."""
        return one_hot_columns_or_zeros(self.index(column), len(self.values)).T

    def inverse(self, rows: Tensor) -> list[str | None]:
        """The values again; None for a row of zeros."""
        return [self.values[int(row.argmax())] if row.any() else None for row in rows]


def one_hot_columns_or_zeros(y: Tensor, classes: int) -> Tensor:
    """As `one_hot_columns`, with zeros where y is −1."""
    return one_hot_columns(y.clamp(min=0), max(classes, 1))[:classes] * (y >= 0)
