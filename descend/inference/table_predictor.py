"""Answers for the records of a table: a class with its probability, or a number in the target's own unit.

class     argmax_k p_k,  p = softmax(z)            number    μ + σ z, with the training records' μ and σ
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from descend.data.reading import read_objects, show
from descend.data.tables.columns import FILE, Columns
from descend.data.tables.records import Records
from descend.data.tables.source import read_csv
from descend.data.tables.values import is_missing, quantities
from descend.errors import Mistake
from descend.inference.inputs import show_value
from descend.inference.trained import Trained
from descend.models.mlp import MLP

ROWS = 4096  # records that go through the model together


@dataclass(frozen=True)
class TableAnswer:
    """A record and what the model says of it."""

    line: int
    record: Mapping[str, str]
    target: str
    prediction: str | float
    probability: float | None = None
    """Of a class."""
    truth: str | float | None = None
    """What the record itself says, if it does."""

    def as_json(self, top: int) -> dict[str, Any]:
        """The line of the file, and the answer by the target's name."""
        sure = {} if self.probability is None else {"probability": self.probability}
        return {"line": self.line, self.target: self.prediction, **sure}

    def as_rows(self) -> list[dict[str, Any]]:
        """The record as it was, and the answer."""
        sure = {} if self.probability is None else {"probability": self.probability}
        return [{**self.record, "prediction": self.prediction, **sure}]

    def compare(self) -> list[tuple[str | float, str | float]]:
        return [] if self.truth is None else [(self.prediction, self.truth)]


@dataclass(frozen=True)
class TablePredictor:
    """The columns that were saved beside the weights, and the model."""

    trained: Trained
    columns: Columns
    takes = "a table"

    @classmethod
    def read(cls, trained: Trained) -> TablePredictor:
        if not isinstance(trained.model, MLP) and not (trained.folder / FILE).exists():
            raise Mistake(f"{trained.folder} holds a {trained.kind}, which was not trained on a table")
        columns = Columns.read(trained.folder)
        if isinstance(trained.model, MLP):
            check_sizes(trained.model, columns, trained.folder / FILE)
        return cls(trained, columns)

    @property
    def labels(self) -> tuple[str, ...]:
        return self.columns.target.labels

    @torch.no_grad()
    def answer_records(self, records: Records) -> list[TableAnswer]:
        """An answer for each record."""
        target, truths = self.columns.target, self.read_truths(records)
        rows = [dict(zip(records.columns, row, strict=True)) for row in zip(*records.columns.values(), strict=True)]
        pieces = self.columns.encode(records).split(ROWS)
        z = torch.cat([self.trained.model(x.to(self.trained.device)).cpu() for x in pieces])
        if not target.labels:
            numbers = (target.mean + target.std * z[:, 0].double()).tolist()
            told = zip(records.lines, rows, numbers, truths, strict=True)
            return [TableAnswer(line, row, target.name, v, None, truth) for line, row, v, truth in told]
        best = self.trained.probabilities(z).max(dim=-1)
        found = zip(records.lines, rows, best.indices.tolist(), best.values.tolist(), truths, strict=True)
        return [TableAnswer(line, row, target.name, target.labels[k], p, truth) for line, row, k, p, truth in found]

    def read_truths(self, records: Records) -> list[str | float | None]:
        """What the records say of the target; None where they say nothing."""
        target = self.columns.target
        texts = records.columns.get(target.name)
        if texts is None:
            return [None] * len(records.lines)
        if target.labels:
            return [None if is_missing(text) and text not in target.labels else text for text in texts]
        return [None if v != v else v for v in quantities(records, target.name, target.kind).tolist()]

    def predict_table(self, path: str | Path) -> list[dict[str, Any]]:
        """An answer for each record of a file, with its line."""
        return [answer.as_json(1) for answer in self.predict([str(path)])]

    def predict(self, inputs: Sequence[str]) -> list[TableAnswer]:
        """The records of several files: .csv (with any usual separator), .tsv or .jsonl."""
        return [answer for path in inputs for answer in self.answer_records(read_table(Path(path)))]


def check_sizes(model: MLP, columns: Columns, path: Path) -> None:
    """Refuse columns that are not those of the model."""
    asked, given = model.config.inputs, len(columns.inputs)
    if asked != given:
        raise Mistake(f"{path} makes {given} inputs, but the model beside it takes {asked}; copy both from one run")
    if columns.target.labels and len(columns.target.labels) != model.config.outputs:
        found = f"{len(columns.target.labels)} classes, but the model beside it has {model.config.outputs}"
        raise Mistake(f"{path} names {found}; copy both from one run")


def read_table(path: Path) -> Records:
    """The records of a file."""
    if path.suffix not in (".jsonl", ".json"):
        return read_csv(path)
    found = list(read_objects(path))
    if not found:
        raise Mistake(f"{show(path)} is empty; give an object on each line")
    names = list(dict.fromkeys(name for _, values in found for name in values))
    columns = {name: [show_value(values.get(name)).strip() for _, values in found] for name in names}
    return Records(columns, [line for line, _ in found], show(path))
