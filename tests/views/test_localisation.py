"""Boxes drawn into images."""

from __future__ import annotations

import torch

from descend.views.localisation import draw_boxes


def test_boxes_are_drawn_along_their_edges() -> None:
    drawn = draw_boxes(torch.zeros(1, 3, 8, 10), torch.tensor([[0.2, 0.25, 0.7, 0.75]]), (1.0, 1.0, 1.0))[0, 0]
    expected = torch.zeros(8, 10)
    expected[2:6, 2:7] = 1
    expected[3:5, 3:6] = 0
    assert torch.equal(drawn, expected)
