"""The boundary that a perceptron has drawn in the plane: two half-planes, and the points it learned from."""

from __future__ import annotations

import torch
from torch import Tensor

from descend.classic.perceptron import Perceptron
from descend.contracts import Exhibit
from descend.errors import Mistake
from descend.views.tables import CELLS, lay_cells


def show_boundary(perceptron: Perceptron, x: Tensor, y: Tensor) -> Exhibit:
    """The class of every point of the plane around x (n, 2); where it changes is the line w·x + b = 0."""
    if x.shape[1:] != (2,):
        raise Mistake(f"points of {x.shape[-1]} numbers have no picture; the boundary is drawn for two inputs")
    lo, hi, cells = lay_cells(x)
    winner = (perceptron.predict(cells.to(x.dtype)) > 0).long().view(CELLS, CELLS)
    learned = perceptron.learned
    content = {
        "x": [float(lo[0]), float(hi[0])],
        "y": [float(lo[1]), float(hi[1])],
        "winner": winner.tolist(),
        "lead": torch.ones(CELLS, CELLS).tolist(),
        "points": {str(label): x[(y > 0) == (label > 0)].tolist() for label in (perceptron.low, 1)},
        "labels": ["x₁", "x₂"],
    }
    ended = "separates the points" if learned.converged else f"leaves {learned.errors[-1]} of {len(x)} wrong"
    note = f"{learned.updates} updates in {learned.epochs} passes; the line {ended}."
    return Exhibit("regions", "Half-planes of the perceptron", content, note)
