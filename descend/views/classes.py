"""What every classifier shows: its confusion matrix, each class's scores, its calibration, and its surest mistakes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from descend.contracts import Exhibit
from descend.metrics.classification import (
    confusion,
    expected_calibration_error,
    macro_f1,
    precision_recall_f1,
    reliability,
)

BINS = 10  # of the reliability diagram


def show_classification(p: Tensor, y: Tensor, names: Sequence[str], of: str) -> list[Exhibit]:
    """Three exhibits of probabilities p (n, classes) for classes y (n); `of` names the examples: "images"."""
    note = f"Validation {of}, best checkpoint."
    predicted = p.argmax(dim=-1)
    return [
        show_confusion(predicted, y, names, note),
        show_reliability(p, y, of),
        show_class_scores(predicted, y, names, of),
    ]


def show_confusion(predicted: Tensor, y: Tensor, names: Sequence[str], note: str) -> Exhibit:
    """Counts of true and predicted classes."""
    counts = confusion(predicted, y, len(names)).tolist()
    return Exhibit("confusion", "Confusion matrix", {"labels": list(names), "counts": counts}, note)


def show_class_scores(predicted: Tensor, y: Tensor, names: Sequence[str], of: str) -> Exhibit:
    """Precision, recall and F1 of each class, and their means over the classes."""
    counts = confusion(predicted, y, len(names))
    there = counts.sum(dim=1)
    scores = torch.stack(precision_recall_f1(counts), dim=1)
    rows: list[list[Any]] = [
        [name, *(round(value, 4) for value in scores[k].tolist()), int(there[k])] for k, name in enumerate(names)
    ]
    seen = there + counts.sum(dim=0) > 0
    means = [*scores[seen, :2].mean(dim=0).tolist(), macro_f1(counts)]
    rows.append(["mean over classes", *(round(value, 4) for value in means), int(there.sum())])
    note = (
        f"Validation {of}. Precision: the share of what is predicted as the class that is of it. Recall: the share "
        "of the class that is predicted as it. F1: their harmonic mean; its mean over the classes is macro F1."
    )
    return Exhibit(
        "table", "Precision, recall and F1", {"columns": ["class", "precision", "recall", "F1", of], "rows": rows}, note
    )


def show_reliability(p: Tensor, y: Tensor, of: str) -> Exhibit:
    """How often the classifier is right when it says how sure it is."""
    count, confidence, accuracy = reliability(p, y, BINS)
    error = expected_calibration_error(p, y, BINS)
    gap = float(p.double().amax(dim=-1).mean()) - float((p.argmax(dim=-1) == y).double().mean())
    said = "overconfident" if gap > 0 else "underconfident"
    note = f"Validation {of}. Expected calibration error (ECE) {error:.4f}"
    note += f"; {said} by {abs(gap):.1%} on average." if abs(gap) >= 0.001 else "."
    content = {"count": count.tolist(), "confidence": confidence.tolist(), "accuracy": accuracy.tolist(), "of": of}
    return Exhibit("reliability", "Calibration (reliability diagram)", content, note)


def rank_mistakes(p: Tensor, y: Tensor, count: int) -> list[int]:
    """Rows of the most confident mistakes, the worst first: probabilities p (n, classes), classes y (n)."""
    sure = torch.where(p.argmax(dim=-1) == y, -1.0, p.amax(dim=-1))
    return [i for i in sure.argsort(descending=True)[:count].tolist() if sure[i] > 0]
