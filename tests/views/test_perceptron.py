"""The drawn boundary is the line of the weights, and the points stand on their sides of it."""

from __future__ import annotations

import pytest
import torch

from descend.classic.perceptron import Perceptron
from descend.errors import Mistake
from descend.ops.dense import decision_line, half_space
from descend.report.exhibits import make_section
from descend.views.perceptron import show_boundary
from descend.views.tables import CELLS

CORNERS = torch.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], dtype=torch.float64)


@pytest.mark.system("perceptron", "boundary-drawn")
@pytest.mark.parametrize("labels", [[0, 0, 0, 1], [-1, 1, 1, 1]], ids=["and", "or"])
def test_the_colour_changes_at_the_line(labels: list[int]) -> None:
    y = torch.tensor(labels)
    found = Perceptron().fit(CORNERS, y)
    exhibit = show_boundary(found, CORNERS, y)
    (left, right), (low, high) = exhibit.content["x"], exhibit.content["y"]
    slope, intercept = decision_line(found.w, found.b)
    winner = torch.tensor(exhibit.content["winner"])
    heights, columns = torch.linspace(low, high, CELLS), torch.linspace(left, right, CELLS)
    crossed = 0
    for j, x1 in enumerate(columns.tolist()):
        changes = (winner[1:, j] != winner[:-1, j]).nonzero().flatten().tolist()
        line = slope.item() * x1 + intercept.item()
        assert len(changes) == (low < line < high)
        for i in changes:
            assert heights[i] - 1e-5 <= line <= heights[i + 1] + 1e-5
            crossed += 1
    assert crossed > CELLS // 4
    sides = half_space(CORNERS, found.w, found.b)
    assert ((sides >= 0) == (y > 0)).all()
    assert exhibit.content["points"][str(y.min().item())] == CORNERS[y <= 0].tolist()
    assert exhibit.content["points"]["1"] == CORNERS[y > 0].tolist()
    assert "separates the points" in exhibit.note


@pytest.mark.system("perceptron", "boundary-drawn")
def test_it_is_drawn() -> None:
    xor = torch.tensor([-1, 1, 1, -1])
    page = make_section(show_boundary(Perceptron(epochs=20).fit(CORNERS, xor), CORNERS, xor))
    assert "data:image/png;base64," in page
    assert page.count("<circle") >= 4
    assert "20 passes; the line leaves " in page
    with pytest.raises(Mistake, match="points of 3 numbers have no picture"):
        show_boundary(Perceptron(), torch.zeros(2, 3), xor[:2])
