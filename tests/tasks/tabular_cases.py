"""A small case of tabular Q-learning, for `cases.py`."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from descend.contracts import Batch, Task
from descend.models.q_table import QTable, QTableConfig
from descend.tasks.q_learning import QLearning

B = 8


def nobody(act: object, seeds: object) -> Tensor:
    raise AssertionError("no episode is played here")


def case() -> tuple[Task, Batch]:
    q = QTable(QTableConfig(observations=4, actions=2, initial=1.0)).double()
    batch = {
        "state": torch.randint(4, (B,)),
        "action": torch.randint(2, (B,)),
        "reward": torch.randn(B, dtype=torch.float64),
        "next": torch.randint(4, (B,)),
        "terminated": torch.rand(B) < 0.3,
        "weight": torch.rand(B, dtype=torch.float64),
    }
    return QLearning(q, 0.9, nobody, lambda values: 0.0), batch


CASES: dict[str, Callable[[], tuple[Task, Batch]]] = {"QLearning": case}
