"""Training beside adversarial examples makes a classifier hold against them."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from descend.contracts import as_loss
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


def trained(adversarially: bool, seed: int = 0) -> ClassifyAdversarially:
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 2))
    task = ClassifyAdversarially(model, eps=0.1)
    learn = task if adversarially else Classify(model)
    optimizer, batch = Adam(lr=0.01).build(model), strong_and_weak(256, 0)
    for _ in range(60):
        for player, loss, _ in learn.moves(batch):
            assert player == "model"
            optimizer.zero_grad()
            as_loss(loss()).total().backward()
            optimizer.step()
    return task.eval()


@pytest.mark.system("adversarial-augmentation", "in-training")
def test_the_loss_is_the_mean_of_clean_and_moved() -> None:
    task, batch = trained(False), strong_and_weak(64, 1)
    [(_, loss, _)] = task.moves(batch)
    both = [cross_entropy(task.model(x), batch["y"]).mean() for x in (batch["x"], task.attack(batch))]
    close(as_loss(loss()).total(), (both[0] + both[1]) / 2)
    assert both[1] > both[0]
    assert (task.attack(batch) - batch["x"]).abs().max() <= 0.1 + 1e-6


@pytest.mark.system("adversarial-augmentation", "holds")
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_it_holds_where_plain_training_falls(seed: int) -> None:
    test, tasks = strong_and_weak(512, 2), [trained(way, seed) for way in (False, True)]
    with torch.no_grad():
        plain, hardened = (task.score(test) for task in tasks)
    means = {name: float(value.double().mean()) for name, value in plain.items()}
    after = {name: float(value.double().mean()) for name, value in hardened.items()}
    assert means["accuracy"] > 0.97
    assert after["accuracy"] > 0.97
    assert means["robust"] < after["robust"] - 0.05
    assert len(plain["robust"]) == 512  # one score for each example


@pytest.mark.parametrize("steps", [1, 3])
def test_standardized_images_are_attacked_as_pixels(steps: int) -> None:
    """x = (pixels − μ) / σ is moved by at most ε in pixels, stays in 0..1, and equals the attack on a plain model."""
    torch.manual_seed(0)
    mean, std = (0.2, 0.5, 0.7), (0.1, 0.3, 2.0)
    mu, sigma = (torch.tensor(v)[:, None, None] for v in (mean, std))
    inner = nn.Sequential(nn.Flatten(), nn.Linear(48, 3))
    pixels, y = torch.rand(6, 3, 4, 4), torch.randint(3, (6,))
    task = ClassifyAdversarially(inner, 0.05, steps, mean, std)
    attacked = task.attack({"x": (pixels - mu) / sigma, "y": y}) * sigma + mu

    class OnPixels(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return inner((x - mu) / sigma)

    expected = ClassifyAdversarially(OnPixels(), 0.05, steps).attack({"x": pixels, "y": y})
    close(attacked, expected)
    assert 0.049 < float((attacked - pixels).abs().max()) <= 0.05 + 1e-5
    assert float(attacked.min()) >= 0
    assert float(attacked.max()) <= 1 + 1e-6
