"""What a table of action values shows: a grid with the best moves, the table itself, and how it was learned."""

from __future__ import annotations

import torch
from torch import Tensor

from descend.contracts import Exhibit
from descend.ops.decisions.bellman import best_actions
from descend.ops.decisions.process import DecisionProcess

MOST_STATES = 100  # of a table that is shown whole
POINTS = 200  # of the curve of training
ARROWS = {(-1, 0): "↑", (1, 0): "↓", (0, -1): "←", (0, 1): "→"}


def find_arrows(process: DecisionProcess) -> list[str] | None:
    """The direction in which each action moves on the grid, on the whole; nothing where it is no grid of moves."""
    if process.labels.grid is None:
        return None
    columns = process.labels.grid[1]
    state, action = process.pair // process.actions, process.pair % process.actions
    down = process.following // columns - state // columns
    right = process.following % columns - state % columns
    near = down.abs() + right.abs() == 1
    drift = torch.zeros(process.actions, 2, dtype=torch.float64)
    moved = torch.stack([down, right], dim=1).double() * process.probability[:, None]
    drift.index_add_(0, action[near], moved[near])
    main = drift.abs().argmax(1)
    sign = drift.gather(1, main[:, None])[:, 0].sign().int().tolist()
    found = [ARROWS.get((s, 0) if axis == 0 else (0, s), "") for axis, s in zip(main.tolist(), sign, strict=True)]
    return found if all(found) else None


def acting_states(process: DecisionProcess) -> Tensor:
    """The states where something is still to be done (S): from the others every outcome is an end without reward."""
    pays = process.add_up(((~process.ends) | (process.reward != 0)).double())
    return pays.sum(1) > 0


def show_values(process: DecisionProcess, q: Tensor) -> list[Exhibit]:
    """max_a Q on the grid, each cell with its best moves, and the table state by action where it is small."""
    q, shown = q.detach().double().cpu(), []
    arrows, labels, acting = find_arrows(process), process.labels, acting_states(process)
    if arrows is not None and labels.grid is not None:
        rows, columns = labels.grid
        value = torch.where(acting, q.amax(1), torch.zeros(())).view(rows, columns)
        best = best_actions(q) & acting[:, None]
        moves = ["".join(a for a, good in zip(arrows, row, strict=True) if good) for row in best.tolist()]
        texts = [moves[i * columns : (i + 1) * columns] for i in range(rows)]
        content = {"values": value.tolist(), "texts": texts}
        shown.append(Exhibit("heatmap", "Best moves", content, "Shade: the value of the cell, max Q. Empty: an end."))
    if process.states <= MOST_STATES:
        actions = list(labels.actions) or arrows or process.action_names
        axes = {"rows": process.state_names, "columns": actions, "row_label": "state", "column_label": "action"}
        shown.append(Exhibit("heatmap", "Action values, Q(s, a)", {"values": q.tolist(), **axes}))
    return shown


def show_learning(finished: list[tuple[float, float]], copies: int) -> Exhibit:
    """The mean return of the training episodes that were over in each stretch of time."""
    told = torch.tensor(finished, dtype=torch.float64).view(-1, 2)
    size = max(1, -(-len(told) // POINTS))
    x, y = [], []
    for start in range(0, len(told), size):
        episodes, total = told[start : start + size].sum(0).tolist()
        if episodes:
            x.append((start + size) * copies)
            y.append(total / episodes)
    content = {"x": x, "y": {"mean return": y}, "x_label": "environment steps", "y_label": "return"}
    return Exhibit("curve", "Training episodes", content, "Exploration included.")
