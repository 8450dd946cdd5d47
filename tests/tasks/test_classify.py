"""Classification as a task: one player, the mean cross-entropy, scores for each example."""

from __future__ import annotations

import torch
from sklearn.metrics import accuracy_score
from torch import nn

from descend.tasks.classify import Classify
from tests.close import close


def batch(n: int = 9) -> dict[str, torch.Tensor]:
    random = torch.Generator().manual_seed(0)
    return {"x": torch.randn(n, 4, generator=random), "y": torch.arange(n) % 3, "ids": torch.arange(n)}


def task() -> Classify:
    torch.manual_seed(0)
    return Classify(nn.Linear(4, 3))


def test_one_move_whose_closure_can_be_called_again() -> None:
    given, one = batch(), task()
    moves = list(one.moves(given))
    assert [move.player for move in moves] == ["model"]
    loss = moves[0].loss
    close(loss(), nn.functional.cross_entropy(one.model(given["x"]), given["y"]))
    before = loss()
    with torch.no_grad():
        one.model.weight.mul_(2)
    assert loss() != before  # evaluated anew, as a line search needs


def test_scores_are_for_each_example_so_any_batching_gives_one_mean() -> None:
    given, one = batch(), task()
    whole = one.score(given)
    assert whole["accuracy"].shape == whole["loss"].shape == (9,)
    parts = [one.score({name: v[i : i + 4] for name, v in given.items()}) for i in (0, 4, 8)]
    for name in whole:
        close(torch.cat([part[name] for part in parts]), whole[name])
    theirs = accuracy_score(given["y"], one.model(given["x"]).argmax(-1))
    close(whole["accuracy"].double().mean(), torch.tensor(theirs, dtype=torch.float64))
