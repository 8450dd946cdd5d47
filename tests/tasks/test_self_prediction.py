"""BYOL and SimSiam: the target follows exactly and takes no gradient; the stopped branch takes none."""

from __future__ import annotations

import math

import pytest
import torch

from descend.losses.self_supervised import cosine_regression
from descend.models.contrastive_encoder import TINY, PredictiveEncoder, SimSiamEncoder
from descend.nn.momentum import follow, rising_momentum, slow_copy
from descend.tasks.self_prediction import BYOL, SimSiam
from tests.close import close
from tests.tasks.self_supervised_cases import Predicting, views
from tests.tasks.test_joint_embedding import train


@pytest.mark.system("byol")
@pytest.mark.system("byol", "momentum")
def test_the_target_follows_with_a_rising_momentum() -> None:
    torch.manual_seed(0)
    model = Predicting()
    task = BYOL(model, momentum=0.8, steps=4)
    run = train(task, model)
    for step in range(5):
        slow = [p.clone() for p in task.target.parameters()]
        run.advance()
        tau = 1 - 0.2 * (math.cos(math.pi * min(step / 4, 1)) + 1) / 2
        for old, now, new in zip(slow, task.target.parameters(), model.parameters(), strict=True):
            close(now, tau * old + (1 - tau) * new)
            assert not now.requires_grad
    assert rising_momentum(0.8, 0, 4) == pytest.approx(0.8)
    assert rising_momentum(0.8, 4, 4) == 1
    assert int(task.steps_taken) == 5


@pytest.mark.system("byol")
@pytest.mark.system("byol", "no-gradient", "loss")
def test_byols_loss_both_ways_and_no_gradient_into_the_target() -> None:
    torch.manual_seed(0)
    task, batch = BYOL(Predicting().double(), 0.9, 10), views()
    task.double()
    follow(task.target, Predicting().double(), 0.5)  # a target that is not the model
    found = task.loss(batch["x1"], batch["x2"])
    p1, p2 = (task.model.predict(task.model.project(batch[name])) for name in ("x1", "x2"))
    z1, z2 = (task.target.project(batch[name]) for name in ("x1", "x2"))
    close(found.total(), (cosine_regression(p1, z2) + cosine_regression(p2, z1)).mean())
    found.total().backward()
    assert all(p.grad is None for p in task.target.parameters())
    assert all(p.grad is not None for p in task.model.parameters())


@pytest.mark.system("simsiam")
@pytest.mark.system("simsiam", "loss", "stop-gradient")
def test_simsiam_has_no_gradient_through_the_stopped_branch() -> None:
    """The gradient is that of predictions of fixed vectors."""
    torch.manual_seed(0)
    task, batch = SimSiam(Predicting().double()), views()
    found = task.loss(batch["x1"], batch["x2"]).total()
    assert -1 <= found.item() <= 1
    found.backward()
    mine = [p.grad.clone() for p in task.model.parameters()]
    task.zero_grad()
    with torch.no_grad():
        z1, z2 = (task.model.project(batch[name]) for name in ("x1", "x2"))
    p1, p2 = (task.model.predict(task.model.project(batch[name])) for name in ("x1", "x2"))
    fixed = -(torch.cosine_similarity(p1, z2) + torch.cosine_similarity(p2, z1)).mean() / 2
    fixed.backward()
    close(found, fixed)
    for ours, expected in zip(mine, task.model.parameters(), strict=True):
        close(ours, expected.grad)


@pytest.mark.system("simsiam")
def test_a_branch_that_is_not_stopped_has_another_gradient() -> None:
    torch.manual_seed(0)
    batch, gradients = views(), []
    for loss_of in (None, lambda p, z: -torch.cosine_similarity(p, z)):
        torch.manual_seed(0)
        model = Predicting().double()
        task = SimSiam(model) if loss_of is None else SimSiam(model, loss_of)
        task.loss(batch["x1"], batch["x2"]).total().backward()
        gradients.append(model.projector.weight.grad)
    assert (gradients[0] - gradients[1]).abs().max() > 1e-3


def test_a_slow_copy_is_a_copy() -> None:
    model = PredictiveEncoder(TINY)
    twin = slow_copy(model)
    follow(twin, PredictiveEncoder(TINY), 1.0)
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), twin.parameters(), strict=True))
    assert not any(p.requires_grad for p in twin.parameters())


def test_simsiams_projector_ends_in_a_batch_norm_without_scale() -> None:
    torch.manual_seed(0)
    x = torch.randn(6, *TINY.image)
    model = SimSiamEncoder(TINY)
    z = model.project(x)
    assert z.mean(0).abs().max() < 1e-6
    close(z.std(0, correction=0), torch.ones(6), loosen=100)  # the norm's eps
    assert model(x).shape == (6, 6)
