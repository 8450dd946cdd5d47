"""Training beside adversarial examples makes a classifier hold against them."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from descend.losses.classification import cross_entropy
from descend.optim.rules import Adam
from descend.tasks.adversarial_examples import ClassifyAdversarially
from descend.tasks.classify import Classify
from tests.close import close

pytestmark = pytest.mark.system("adversarial-augmentation")


def strong_and_weak(n: int, seed: int) -> dict[str, Tensor]:
    """Two pixels that differ by 0.4 between the classes, and 30 that differ by 0.06: less than an attack of 0.1."""
    random = torch.Generator().manual_seed(seed)
    y = torch.randint(2, (n,), generator=random)
    gap = torch.cat([torch.full((2,), 0.2), torch.full((30,), 0.03)])
    x = 0.5 + (2.0 * y[:, None] - 1) * gap + 0.05 * torch.randn(n, 32, generator=random)
    return {"x": x.clamp(0, 1), "y": y}


def trained(adversarially: bool) -> ClassifyAdversarially:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 2))
    task = ClassifyAdversarially(model, eps=0.1)
    learn = task if adversarially else Classify(model)
    optimizer, batch = Adam(lr=0.01).build(model), strong_and_weak(256, 0)
    for _ in range(60):
        for player, loss in learn.moves(batch):
            assert player == "model"
            optimizer.zero_grad()
            loss().backward()
            optimizer.step()
    return task.eval()


def test_the_loss_is_the_mean_of_clean_and_moved() -> None:
    task, batch = trained(False), strong_and_weak(64, 1)
    [(_, loss)] = task.moves(batch)
    both = [cross_entropy(task.model(x), batch["y"]).mean() for x in (batch["x"], task.moved(batch))]
    close(loss(), (both[0] + both[1]) / 2)
    assert both[1] > both[0]
    assert (task.moved(batch) - batch["x"]).abs().max() <= 0.1 + 1e-6


def test_it_holds_where_plain_training_falls() -> None:
    test, tasks = strong_and_weak(512, 2), [trained(way) for way in (False, True)]
    with torch.no_grad():
        plain, hardened = (task.score(test) for task in tasks)
    means = {name: float(value.double().mean()) for name, value in plain.items()}
    after = {name: float(value.double().mean()) for name, value in hardened.items()}
    assert means["accuracy"] > 0.97
    assert after["accuracy"] > 0.97
    assert means["robust"] < after["robust"] - 0.05
    assert len(plain["robust"]) == 512  # one score for each example
