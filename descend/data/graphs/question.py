"""What a model of graphs was trained to say, kept beside its weights: at which level, in which words, in which units.

nodes     a class for each node              graphs    a class for each graph, or numbers
links     is there an edge between two nodes

number    ŷ = μ + σ z, with the training graphs' μ and σ of each target
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self, cast

import torch
from torch import Tensor

from descend.errors import Mistake
from descend.files import field, items, read_json, write_json

FILE = "graph_question.json"
Level = Literal["nodes", "graphs", "links"]
LEVELS = ("nodes", "graphs", "links")


@dataclass(frozen=True)
class Question:
    """Level, classes or targets, and how a file of graphs is read."""

    level: Level
    directed: bool = False
    labels: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()
    widths: tuple[int, ...] = ()
    """Of whole graphs: attributes of a node, of an edge, of the graph."""
    column: str = ""
    """Of whole graphs: the field or column of a file that says the class or number; empty: as the reader chooses."""

    def standardize(self, y: Tensor) -> Tensor:
        """z of targets y (g, t); a target that never changes keeps its scale."""
        return ((y.double() - torch.tensor(self.mean).double()) / torch.tensor(self.std).double()).float()

    def restore(self, z: Tensor) -> Tensor:
        """ŷ = μ + σ z of outputs (g, t)."""
        return torch.tensor(self.mean).double() + torch.tensor(self.std).double() * z.double()

    def check_widths(self, widths: tuple[int, int, int], where: str) -> None:
        """Refuse graphs with other attributes than those that the model was trained on."""
        for name, given, known in zip(("node", "edge", "graph"), widths, self.widths, strict=True):
            if given != known:
                raise Mistake(f"{where}: {name} attributes: {given}, but the model was trained on {known}")

    def save(self, folder: Path) -> None:
        """Beside the weights."""
        write_json(Path(folder) / FILE, {**vars(self)})

    @classmethod
    def read(cls, folder: Path) -> Self:
        """What `save` wrote."""
        path = Path(folder) / FILE
        values = read_json(path)
        level = field(values, "level", str, path)
        if level not in LEVELS:
            raise Mistake(f"{path}: level {level!r} must be one of {', '.join(LEVELS)}")
        return cls(
            cast(Level, level),
            field(values, "directed", bool, path),
            tuple(items(values, "labels", str, path)),
            tuple(items(values, "targets", str, path)),
            tuple(items(values, "mean", float, path)),
            tuple(items(values, "std", float, path)),
            tuple(items(values, "widths", int, path)),
            field(values, "column", str, path),
        )


def measure_targets(y: Tensor) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """μ and σ of targets (g, t)."""
    y = y.double()
    deviation = y.std(dim=0, correction=0)
    return tuple(y.mean(dim=0).tolist()), tuple(torch.where(deviation > 0, deviation, 1.0).tolist())
