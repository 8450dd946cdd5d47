"""What a classifier answers: the classes of each input by probability, the most likely first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor


@dataclass(frozen=True)
class Answer:
    """What was asked, the classes by probability, the most likely first, and the object's box, if there is one."""

    input: str
    classes: tuple[tuple[str, float], ...]
    box: tuple[float, ...] = ()
    """x0, y0, x1, y1 as shares of the image's width and height."""

    def as_json(self, top: int) -> dict[str, Any]:
        """With the `top` most likely classes."""
        answers = [{"label": label, "probability": p} for label, p in self.classes[:top]]
        return {"input": self.input, "answers": answers} | ({"box": list(self.box)} if self.box else {})


def rank_classes(inputs: Sequence[str], p: Tensor, labels: Sequence[str]) -> list[Answer]:
    """Probabilities (n, classes) as answers."""
    order = p.argsort(dim=1, descending=True, stable=True)
    return [
        Answer(given, tuple((labels[k], float(row[k])) for k in best))
        for given, row, best in zip(inputs, p, order.tolist(), strict=True)
    ]
