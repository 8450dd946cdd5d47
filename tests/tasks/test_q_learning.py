"""The gradient step of the task is the update of the table."""

from __future__ import annotations

import pytest
import torch

from descend.classic.q_learning import update
from descend.optim.rules import SGD
from descend.tasks.q_learning import QLearning
from tests.close import close
from tests.tasks.tabular_cases import case


@pytest.mark.system("q-learning", "update")
def test_a_step_of_gradient_descent_is_the_update() -> None:
    torch.manual_seed(0)
    task, batch = case()
    assert isinstance(task, QLearning)
    table = task.q.values.detach().clone()
    optimizer = SGD(lr=1.0, momentum=0.0).build(task.q)
    for _ in range(3):
        update(table, batch, 0.9)
        [move] = list(task.moves(batch))
        optimizer.zero_grad()
        move.value().total().backward()
        optimizer.step()
        close(task.q.values, table)
    close(task.values(batch["state"]), table[batch["state"]])
    assert torch.equal(task.greedy(batch["state"]), table[batch["state"]].argmax(1))
