"""Points of the user's own: two columns of numbers in a .csv or .tsv file, with or without a line of names.

A column of whole numbers has no density: a model could make it as high as it likes at each of them. Dequantised,
x + u with u uniform in 0..1, it has one, and E_u[log p(x + u)] is a lower bound of log P(x) for the whole number x.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from descend.data.reading import read_rows, show
from descend.errors import Mistake
from descend.files import items, read_json, write_json

SAVED = "points.json"


@dataclass(frozen=True)
class PointScale:
    """What was taken from points to standardize them, x → (x − mean) / std: two numbers of each column."""

    mean: tuple[float, ...]
    std: tuple[float, ...]

    def restore(self, x: Tensor) -> Tensor:
        """Standardized points in the file's units."""
        return x * x.new_tensor(self.std) + x.new_tensor(self.mean)

    def save(self, folder: Path) -> None:
        """points.json beside the weights."""
        write_json(folder / SAVED, {"mean": self.mean, "std": self.std})

    @classmethod
    def read(cls, folder: Path) -> PointScale:
        """What `save` wrote."""
        path = folder / SAVED
        values = read_json(path)
        return cls(*(tuple(items(values, name, float, path)) for name in ("mean", "std")))


def read_points(path: str | Path) -> Tensor:
    """The points of a file (n, 2), in float64."""
    separator = "\t" if Path(path).suffix.lower() == ".tsv" else ","
    points: list[list[float]] = []
    for line, fields in read_rows(path, separator):
        where = f"{show(path)}, line {line}"
        if not any(field.strip() for field in fields):
            continue
        if len(fields) != 2:
            raise Mistake(f"{where}: {len(fields)} columns; points in the plane need 2")
        try:
            pair = [float(field) for field in fields]
        except ValueError:
            if not points and line == 1:  # the names of the columns
                continue
            raise Mistake(f"{where}: {' '.join(fields)!r} are not 2 numbers; correct or remove the line") from None
        if not all(map(math.isfinite, pair)):
            raise Mistake(f"{where}: {' '.join(fields)} is not finite; correct or remove the line")
        points.append(pair)
    if not points:
        raise Mistake(f"{show(path)} holds no points; each line is a pair of numbers: 0.25,-1.5")
    return torch.tensor(points, dtype=torch.float64)


def find_whole(points: Tensor) -> list[int]:
    """The columns that hold nothing but whole numbers."""
    return [k for k, column in enumerate(points.T) if bool((column == column.round()).all())]


def dequantise(points: Tensor, random: torch.Generator) -> Tensor:
    """Uniform noise in 0..1 added to every number of the whole columns, once and for all."""
    noise = torch.rand(points.shape, generator=random, dtype=points.dtype)
    whole = find_whole(points)
    mask = torch.tensor([k in whole for k in range(points.shape[1])])
    return points + noise * mask
