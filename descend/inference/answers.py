"""What a model answers: the classes of each input by probability, the most likely first; and how often it is right.

as_json(top)    for programs          as_rows()   the input's own columns, the prediction and its probability
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import torch
from torch import Tensor

from descend.errors import Mistake
from descend.metrics.classification import find_macro_f1
from descend.metrics.regression import mean_absolute_error, r_squared, root_mean_squared_error

SIDES = ("left", "top", "right", "bottom")  # of a box


class Answered(Protocol):
    """What every answer offers."""

    def as_json(self, top: int) -> dict[str, Any]: ...

    def as_rows(self) -> list[dict[str, Any]]:
        """One, or one for each thing that was found."""
        ...

    def compare(self) -> list[tuple[str | float, str | float]]:
        """(predicted, true) of what can be compared; nothing where the truth is not told."""
        ...


@dataclass(frozen=True)
class Answer:
    """What was asked, the classes by probability, the most likely first, and the object's box, if there is one."""

    input: str
    classes: tuple[tuple[str, float], ...]
    box: tuple[float, ...] = ()
    """x0, y0, x1, y1 as shares of the image's width and height."""
    measure: str = "probability"
    """What the numbers of the classes are; of neighbours the cosine."""
    record: Mapping[str, str] = field(default_factory=dict)
    """The columns of the record that was asked about."""
    truth: str = ""
    """Its class, where the record says it."""

    def as_json(self, top: int) -> dict[str, Any]:
        """With the `top` most likely classes."""
        answers = [{"label": label, self.measure: p} for label, p in self.classes[:top]]
        found: dict[str, Any] = {"input": self.input, "answers": answers}
        return found | ({"box": list(self.box)} if self.box else {}) | ({"truth": self.truth} if self.truth else {})

    def as_rows(self) -> list[dict[str, Any]]:
        """The record, the most likely class and its probability, and the box."""
        (label, p), *_ = self.classes or (("", 0.0),)
        box = dict(zip(SIDES, self.box, strict=False))
        return [{**(self.record or {"input": self.input}), "prediction": label, self.measure: p, **box}]

    def compare(self) -> list[tuple[str | float, str | float]]:
        return [(self.classes[0][0], self.truth)] if self.truth else []


def rank_classes(inputs: Sequence[str], p: Tensor, labels: Sequence[str]) -> list[Answer]:
    """Probabilities (n, classes) as answers."""
    if not p.isfinite().all():
        raise Mistake("the model's answers are not numbers (NaN or infinity): its weights are damaged; copy it again")
    order = p.argsort(dim=1, descending=True, stable=True)
    return [
        Answer(given, tuple((labels[k], float(row[k])) for k in best))
        for given, row, best in zip(inputs, p, order.tolist(), strict=True)
    ]


def with_records(
    answers: Sequence[Answer], records: Sequence[Mapping[str, str]], truths: Sequence[str]
) -> list[Answer]:
    """The answers with the records they are about."""
    told = zip(answers, records, truths, strict=True)
    return [replace(answer, record=record, truth=truth) for answer, record, truth in told]


def score_answers(answers: Sequence[Answered]) -> dict[str, float]:
    """Accuracy and macro F1, or MAE, RMSE and R², over the answers whose truth is told; nothing where none is."""
    pairs = [pair for answer in answers for pair in answer.compare()]
    if not pairs:
        return {}
    if all(isinstance(predicted, float) for predicted, _ in pairs):
        predicted, y = torch.tensor(pairs, dtype=torch.float64).unbind(1)
        spread = {"R²": r_squared(predicted, y)} if len(y) > 1 else {}
        error = {"MAE": mean_absolute_error(predicted, y), "RMSE": root_mean_squared_error(predicted, y)}
        return {"records": len(pairs)} | error | spread
    names = {name: k for k, name in enumerate(sorted({str(name) for pair in pairs for name in pair}))}
    numbers = torch.tensor([[names[str(a)], names[str(b)]] for a, b in pairs])
    accuracy = float((numbers[:, 0] == numbers[:, 1]).double().mean())
    return {"records": len(pairs), "accuracy": accuracy, "macro F1": find_macro_f1(*numbers.unbind(1))}


def find_strange(answers: Sequence[Answered], labels: Sequence[str]) -> str:
    """A true class that the model does not know, "" where there is none: no score could be fair to it."""
    known = set(labels)
    pairs = (pair for answer in answers for pair in answer.compare()) if known else ()
    return next((str(truth) for _, truth in pairs if truth not in known), "")
