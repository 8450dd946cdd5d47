"""The confusion matrix, and mistakes in the order of confidence."""

from __future__ import annotations

import torch

from descend.views.classes import rank_mistakes, show_confusion
from descend.views.pixels import channels_last


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
