"""Accuracy, top-k and confusion against scikit-learn."""

from __future__ import annotations

import pytest
import torch
from sklearn.metrics import accuracy_score, confusion_matrix, top_k_accuracy_score

from descend.metrics.classification import confusion, correct, top_k
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
