"""I-JEPA: the loss is on target patches only, the target encoder takes no gradient and follows exactly."""

from __future__ import annotations

import pytest
import torch
from torch.nn.functional import layer_norm

from descend.nn.momentum import follow
from tests.close import close
from tests.tasks.cases import make
from tests.tasks.test_joint_embedding import train


@pytest.mark.system("jepa")
@pytest.mark.system("jepa", "target-patches-only")
def test_only_target_patches_cost() -> None:
    task, batch = make("JEPA")
    predicted = task.online(batch["x"], batch["context"], batch["targets"])
    with torch.no_grad():
        tokens = layer_norm(task.target(batch["x"]), (32,))
    wanted = torch.stack([tokens[i, places] for i, places in enumerate(batch["targets"])])
    close(task.loss(batch).total(), (predicted - wanted).square().mean())
    aims = []
    for changed in (False, True):
        found = tokens.clone()
        if changed:  # whatever the target encoder says of other patches
            rest = torch.ones(8, 9, dtype=torch.bool).scatter_(1, batch["targets"].flatten(1), False)
            found[rest] = 99.0
        aims.append(torch.stack([found[i, places] for i, places in enumerate(batch["targets"])]))
    assert torch.equal(*aims)
    assert torch.equal(task.aim(batch), aims[0])


@pytest.mark.system("jepa")
@pytest.mark.system("jepa", "no-gradient")
def test_the_target_takes_no_gradient_and_follows() -> None:
    task, batch = make("JEPA")
    follow(task.target, make("JEPA")[0].online.encoder, 0.5)
    task.loss(batch).total().backward()
    assert all(p.grad is None and not p.requires_grad for p in task.target.parameters())
    assert all(p.grad is not None for p in task.online.parameters())
    task, batch = make("JEPA")
    task, batch = task.float(), {name: x.float() if x.is_floating_point() else x for name, x in batch.items()}
    run = train(task, task.target, lambda step: batch, "online")
    slow = [p.clone() for p in task.target.parameters()]
    run.advance()
    for old, now, new in zip(slow, task.target.parameters(), task.online.encoder.parameters(), strict=True):
        close(now, 0.9 * old + 0.1 * new)


@pytest.mark.system("jepa")
def test_blocks_are_predicted_one_by_one() -> None:
    task, batch = make("JEPA")
    both = task.online(batch["x"], batch["context"], batch["targets"])
    alone = task.online(batch["x"], batch["context"], batch["targets"][:, 1:])
    close(both[:, 1:], alone)


@pytest.mark.system("jepa")
def test_an_image_learned_by_heart_is_foreseen() -> None:
    task, batch = make("JEPA")
    task, batch = task.float(), {name: x.float() if x.is_floating_point() else x for name, x in batch.items()}
    run = train(task, task.target, lambda step: batch, "online", rate=0.5)
    first = run.advance()["loss"]
    for _ in range(60):
        last = run.advance()["loss"]
    assert last < first / 2
