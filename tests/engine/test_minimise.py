from __future__ import annotations

import torch
from torch import Tensor, nn

from descend.engine.minimise import minimise, take_steps
from descend.optim.rules import SGD, AdamW
from descend.optim.schedules import Cosine
from tests.close import close


def line() -> tuple[nn.Linear, Tensor, Tensor]:
    torch.manual_seed(0)
    return nn.Linear(3, 1), torch.randn(16, 3), torch.randn(16, 1)


def test_the_steps_are_the_optimizers_own() -> None:
    """Clipping, schedule and decay as in a loop by hand."""
    model, x, y = line()
    seen = minimise(model, lambda: (model(x) - y).square().mean(), 5, AdamW(0.1), Cosine(warmup=2), clip=0.5)
    twin, x, y = line()
    rule, schedule = AdamW(0.1).build(twin), Cosine(warmup=2)
    for step in range(5):
        for group in rule.param_groups:
            group["lr"] = 0.1 * schedule(step, 5)
        rule.zero_grad()
        loss = (twin(x) - y).square().mean()
        close(torch.tensor(seen[step]), loss.detach())
        loss.backward()
        nn.utils.clip_grad_norm_(twin.parameters(), 0.5)
        rule.step()
    for mine, hand in zip(model.parameters(), twin.parameters(), strict=True):
        close(mine, hand)


def test_the_gradient_of_a_step_can_be_seen_after_it() -> None:
    model, x, y = line()
    before = model.weight.detach().clone()
    steps = take_steps(model, lambda: (model(x) - y).square().mean(), 3, SGD(0.1, momentum=0.0))
    next(steps)
    assert model.weight.grad is not None
    close(model.weight.detach(), before - 0.1 * model.weight.grad)
    assert len(list(steps)) == 2


def test_dropout_follows_the_seed_and_the_generator_is_left_alone() -> None:
    def run() -> tuple[list[float], Tensor]:
        model, x, y = line()
        net = nn.Sequential(nn.Dropout(0.5), model)
        losses = minimise(net, lambda: (net(x) - y).square().mean(), 4, SGD(0.01))
        return losses, torch.rand(1)

    (first, after), (second, again) = run(), run()
    assert first == second
    assert len(set(first)) == 4
    assert torch.equal(after, again)
    line()
    torch.randint(2**31, ())  # the one draw that seeds the steps
    assert torch.equal(after, torch.rand(1))
