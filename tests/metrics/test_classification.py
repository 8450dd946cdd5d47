"""Accuracy, top-k and confusion against scikit-learn."""

from __future__ import annotations

import pytest
import torch
from sklearn.metrics import (
    accuracy_score,
    confusion_matrix,
    f1_score,
    precision_recall_fscore_support,
    top_k_accuracy_score,
)

from descend.metrics.classification import (
    confusion,
    correct,
    expected_calibration_error,
    macro_f1,
    precision_recall_f1,
    reliability,
    top_k,
)
from tests.close import close

LOGITS = torch.randn(200, 6, generator=torch.Generator().manual_seed(0))
Y = torch.arange(200) % 6


def test_accuracy() -> None:
    assert correct(LOGITS, Y).shape == (200,)
    close(correct(LOGITS, Y).double().mean(), torch.tensor(accuracy_score(Y, LOGITS.argmax(-1)), dtype=torch.float64))


@pytest.mark.system("top-k-error")
@pytest.mark.system("top-k-error", "from-logits", "ordered")
@pytest.mark.parametrize("k", [1, 2, 5])
def test_top_k(k: int) -> None:
    theirs = top_k_accuracy_score(Y, LOGITS.numpy(), k=k)
    close(top_k(LOGITS, Y, k).double().mean(), torch.tensor(theirs, dtype=torch.float64))
    assert torch.equal(top_k(LOGITS, Y, 1), correct(LOGITS, Y))
    assert (top_k(LOGITS, Y, k) >= top_k(LOGITS, Y, 1)).all()


@pytest.mark.system("top-k-error")
@pytest.mark.system("top-k-error", "random-guess")
def test_a_guess_among_a_thousand() -> None:
    """DLN-ILSVRC-random: one answer for all, one example of each class."""
    logits, y = LOGITS.flatten()[:1000].expand(1000, 1000), torch.arange(1000)
    close(1 - top_k(logits, y, 1).mean(), torch.tensor(0.999))
    close(1 - top_k(logits, y, 5).mean(), torch.tensor(0.995))


def test_confusion() -> None:
    predicted = LOGITS.argmax(-1)
    ours = confusion(predicted, Y, 7)  # a class that never occurs has its row and column
    theirs = confusion_matrix(Y, predicted, labels=range(7))
    assert ours.tolist() == theirs.tolist()
    assert confusion(torch.tensor([1]), torch.tensor([0]), 2).tolist() == [[0, 1], [0, 0]]  # rows are the truth


def test_precision_recall_and_f1_are_scikit_learns() -> None:
    torch.manual_seed(0)
    y, predicted = torch.randint(0, 4, (60,)), torch.randint(0, 5, (60,))  # class 4 never occurs
    counts = confusion(predicted, y, 5)
    theirs = precision_recall_fscore_support(y, predicted, labels=range(5), zero_division=0)
    for mine, expected in zip(precision_recall_f1(counts), theirs[:3], strict=True):
        close(mine, torch.from_numpy(expected))
    close(macro_f1(counts), f1_score(y, predicted, average="macro", zero_division=0))


def test_a_class_that_neither_occurs_nor_is_predicted_does_not_lower_macro_f1() -> None:
    counts = torch.tensor([[3, 0, 0], [0, 2, 0], [0, 0, 0]])
    assert macro_f1(counts) == 1


def test_a_model_that_is_right_as_often_as_it_says_is_calibrated() -> None:
    p = torch.tensor([[0.75, 0.25]] * 4 + [[0.1, 0.9]] * 10, dtype=torch.float64)
    y = torch.tensor([0, 0, 0, 1] + [1] * 9 + [0])
    assert expected_calibration_error(p, y) < 1e-6
    count, confidence, accuracy = reliability(p, y)
    assert count.tolist() == [0, 0, 0, 0, 0, 0, 0, 4, 0, 10]
    close(confidence[[7, 9]], torch.tensor([0.75, 0.9], dtype=torch.float64))
    close(accuracy[[7, 9]], torch.tensor([0.75, 0.9], dtype=torch.float64))
    assert expected_calibration_error(p, 1 - y) == pytest.approx((4 * 0.5 + 10 * 0.8) / 14)
