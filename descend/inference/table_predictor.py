"""Answers for the records of a CSV file: a class with its probability, or a number in the target's own unit.

class     argmax_k p_k,  p = softmax(z)            number    μ + σ z, with the training records' μ and σ
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from descend.data.tables.columns import Columns
from descend.data.tables.source import read_csv
from descend.errors import Mistake
from descend.inference.trained import Trained
from descend.models.mlp import MLP

ROWS = 4096  # records that go through the model together


@dataclass(frozen=True)
class TablePredictor:
    """The columns that were saved beside the weights, and the model."""

    trained: Trained
    columns: Columns
    takes = "a table"

    @classmethod
    def read(cls, trained: Trained) -> TablePredictor:
        if not isinstance(trained.model, MLP):
            raise Mistake(f"{trained.folder} holds a {trained.kind}, which was not trained on a table")
        return cls(trained, Columns.read(trained.folder))

    @torch.no_grad()
    def predict_table(self, path: str | Path) -> list[dict[str, Any]]:
        """An answer for each record of a CSV file, with its line."""
        records, target = read_csv(path), self.columns.target
        pieces = self.columns.encode(records).split(ROWS)
        z = torch.cat([self.trained.model(x.to(self.trained.device)).cpu() for x in pieces])
        if not target.labels:
            return [
                {"line": n, target.name: target.mean + target.std * float(v)}
                for n, v in zip(records.lines, z[:, 0], strict=True)
            ]
        best = z.softmax(dim=-1).max(dim=-1)
        return [
            {"line": n, target.name: target.labels[int(k)], "probability": float(p)}
            for n, p, k in zip(records.lines, best.values, best.indices, strict=True)
        ]

    def predict(self, inputs: Sequence[str]) -> list[dict[str, Any]]:
        """The records of several files."""
        return [row for path in inputs for row in self.predict_table(path)]
