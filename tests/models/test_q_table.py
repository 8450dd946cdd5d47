"""The table: a row for each state, named by its number or by a one-hot vector."""

from __future__ import annotations

import torch

from descend.models.q_table import QTable, QTableConfig
from tests.close import close


def test_a_state_is_a_row() -> None:
    model = QTable(QTableConfig(observations=5, actions=3, initial=2.5))
    assert sum(p.numel() for p in model.parameters()) == 15
    assert (model.values == 2.5).all()
    with torch.no_grad():
        model.values.copy_(torch.arange(15.0).view(5, 3))
    states = torch.tensor([[4, 0], [1, 1]])
    close(model(states), model.values[states])
    close(model(torch.nn.functional.one_hot(states, 5).float()), model(states))
