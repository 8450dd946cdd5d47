"""What every classifier shows: its confusion matrix, and where it is wrong and sure of it."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from descend.contracts import Exhibit
from descend.metrics.classification import confusion


def show_confusion(predicted: Tensor, y: Tensor, names: Sequence[str], note: str) -> Exhibit:
    """Counts of true and predicted classes."""
    counts = confusion(predicted, y, len(names)).tolist()
    return Exhibit("confusion", "Confusion matrix", {"labels": list(names), "counts": counts}, note)


def rank_mistakes(p: Tensor, y: Tensor, count: int) -> list[int]:
    """Rows of the most confident mistakes, the worst first: probabilities p (n, classes), classes y (n)."""
    sure = torch.where(p.argmax(dim=-1) == y, -1.0, p.amax(dim=-1))
    return [i for i in sure.argsort(descending=True)[:count].tolist() if sure[i] > 0]
