"""Assignment: which prediction answers for which true object, at the least total cost.

    π* = argmin_π Σ_i C[i, π(i)]            over one-to-one maps of the smaller side into the larger

`assign` is exact, for any rectangle, in O(n² m): rows are added one by one, each along the cheapest path that exchanges
assignments made before (shortest augmenting paths), with prices u, v that keep C[i, j] − u_i − v_j ≥ 0.
`greedy_assign` takes the least entry left and strikes its row and column. The book prints it as a "simplified
Hungarian" algorithm; it is another one: on [[1, 2], [2, 4]] it pays 5, the optimum is 4 (erratum).

Ties may be resolved otherwise than in scipy; the total is the same.

Systems: hungarian-matching
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from descend.errors import Mistake
from descend.native.assignment import assign_columns

Numbers = NDArray[np.float64]
Indices = NDArray[np.int64]


def assign(cost: Tensor) -> tuple[Tensor, Tensor]:
    """Rows and columns of the cheapest assignment of cost (n, m), min(n, m) of each, by row."""
    if cost.ndim != 2:
        raise Mistake(f"an assignment needs a table of costs (n, m), not one of shape {tuple(cost.shape)}")
    rows = assign_all(cost[None], torch.tensor([cost.shape[1]]))[0]
    columns = (rows >= 0).nonzero()[:, 0]
    order = rows[columns].argsort()
    return rows[columns][order], columns[order]


def assign_all(cost: Tensor, counts: Tensor) -> Tensor:
    """The row of each of the first `counts` (b) columns of cost (b, n, m) -> (b, m); −1 for the other columns.

    Predictions are rows, true objects columns. Where there are more objects than predictions, some are left with −1.
    """
    m = cost.shape[2]
    table = read_costs(
        cost.masked_fill(torch.arange(m, device=cost.device) >= counts.to(cost.device)[:, None, None], 0)
    )
    found = assign_columns(table, counts.cpu())
    return (assign_in_turn(table, counts) if found is None else found).to(cost.device)


def assign_in_turn(cost: Tensor, counts: Tensor) -> Tensor:
    """The same without compiled code."""
    b, n, m = cost.shape
    found = np.full((b, m), -1)
    for image, count in enumerate(counts.tolist()):
        table = cost[image, :, :count].numpy()
        if count <= n:
            found[image, :count] = assign_rows(table.T)
        else:
            found[image, assign_rows(table)] = np.arange(n)
    return torch.from_numpy(found)


def greedy_assign(cost: Tensor) -> tuple[Tensor, Tensor]:
    """Rows and columns by the least entry left, in the order in which they are taken (min(n, m) of each)."""
    n, m = cost.shape
    left = read_costs(cost).clone()
    taken = []
    for _ in range(min(n, m)):
        row, column = divmod(int(left.argmin()), m)
        left[row], left[:, column] = np.inf, np.inf
        taken.append((row, column))
    pairs = torch.tensor(taken, dtype=torch.long, device=cost.device).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]


def total_cost(cost: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """Σ C[row, column] of an assignment."""
    return cost[rows, columns].sum()


def read_costs(cost: Tensor) -> Tensor:
    """Costs as they are computed with, in float64 on the CPU; what is not finite is refused."""
    table = cost.detach().double().cpu()
    if not bool(table.isfinite().all()):
        place = (~table.isfinite()).nonzero()[0].tolist()
        raise Mistake(f"the cost at {place} is {float(table[tuple(place)])}: an assignment needs finite costs")
    return table


def assign_rows(cost: Numbers) -> Indices:
    """The column of every row of cost (n, m), n ≤ m."""
    n, m = cost.shape
    u, v = np.zeros(n), np.zeros(m)
    row_of, column_of = np.full(m, -1), np.full(n, -1)
    for first in range(n):
        near, back, is_open = np.full(m, np.inf), np.full(m, -1), np.ones(m, dtype=bool)
        row, reach = first, 0.0
        while row >= 0:  # the cheapest path from the new row to a free column
            through = reach + cost[row] - u[row] - v
            better = is_open & (through < near)
            near[better], back[better] = through[better], row
            column = int(np.where(is_open, near, np.inf).argmin())
            reach, is_open[column] = near[column], False
            row = row_of[column]
        seen = np.flatnonzero(~is_open & (row_of >= 0))
        u[first] += reach
        u[row_of[seen]] += reach - near[seen]
        v[seen] -= reach - near[seen]
        while column >= 0:  # exchange along the path
            row = row_of[column] = back[column]
            column, column_of[row] = column_of[row], column
    return column_of
