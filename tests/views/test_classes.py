"""The confusion matrix, the scores of each class, calibration, and mistakes in the order of confidence."""

from __future__ import annotations

import torch
from sklearn.metrics import f1_score, precision_recall_fscore_support

from descend.metrics.classification import expected_calibration_error
from descend.views.classes import rank_mistakes, show_classification, show_confusion, show_reliability
from descend.views.pixels import channels_last
from tests.close import close


def test_rows_are_the_truth() -> None:
    shown = show_confusion(torch.tensor([0, 1, 1]), torch.tensor([0, 0, 1]), ("cat", "dog"), "a note")
    assert (shown.kind, shown.title, shown.note) == ("confusion", "Confusion matrix", "a note")
    assert shown.content == {"labels": ["cat", "dog"], "counts": [[1, 1], [0, 1]]}


def test_the_surest_mistake_comes_first() -> None:
    p = torch.tensor([[0.9, 0.1], [0.6, 0.4], [0.2, 0.8], [0.3, 0.7]])
    y = torch.tensor([1, 1, 1, 0])
    assert rank_mistakes(p, y, 8) == [0, 3, 1]
    assert rank_mistakes(p, y, 1) == [0]
    assert rank_mistakes(p, p.argmax(dim=1), 8) == []


def test_channels_go_last_and_one_channel_goes() -> None:
    colour = torch.rand(2, 5, 3, 4, 6)
    assert channels_last(colour).shape == (2, 5, 4, 6, 3)
    assert channels_last(colour[:, 0])[1, 2, 5, 0] == colour[1, 0, 0, 2, 5]
    assert channels_last(torch.rand(5, 1, 4, 6)).shape == (5, 4, 6)


def test_one_view_of_every_classifier() -> None:
    random = torch.Generator().manual_seed(0)
    p, y = torch.rand(60, 3, generator=random).softmax(dim=1), torch.arange(60) % 3
    matrix, calibration, table = show_classification(p, y, ("a", "b", "c"), "images")
    assert [e.kind for e in (matrix, calibration, table)] == ["confusion", "reliability", "table"]
    precision, recall, f1, _ = precision_recall_fscore_support(y, p.argmax(dim=1))
    assert table.content["columns"] == ["class", "precision", "recall", "F1", "images"]
    rows = table.content["rows"]
    assert [row[0] for row in rows] == ["a", "b", "c", "mean over classes"]
    theirs = torch.stack([torch.tensor(v) for v in (precision, recall, f1)], dim=1).round(decimals=4)
    close(torch.tensor([row[1:4] for row in rows[:3]], dtype=torch.float64), theirs)
    close(rows[3][3], round(f1_score(y, p.argmax(dim=1), average="macro"), 4))
    assert [row[4] for row in rows] == [20, 20, 20, 60]
    assert sum(calibration.content["count"]) == 60
    assert f"(ECE) {expected_calibration_error(p, y):.4f}" in calibration.note


def test_calibration_says_in_which_direction() -> None:
    y = torch.tensor([0] * 6 + [1] * 4)
    sure, unsure = torch.tensor([[0.99, 0.01]] * 10), torch.tensor([[0.51, 0.49]] * 10)
    assert "overconfident by 39.0%" in show_reliability(sure, y, "texts").note
    assert "underconfident by 9.0%" in show_reliability(unsure, y, "texts").note
    exact = torch.tensor([[0.6, 0.4]] * 10, dtype=torch.float64)
    assert show_reliability(exact, y, "texts").note.endswith("(ECE) 0.0000.")
