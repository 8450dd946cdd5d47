from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from descend.optim.by_part import ByPart, Part, decay_rates, learning_rates, thaw_parts
from descend.optim.rules import LBFGS, SGD, AdamW


def net() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 4), nn.Linear(4, 2)).double()


def move(model: nn.Module, rule: torch.optim.Optimizer) -> None:
    def closure() -> float:
        rule.zero_grad()
        loss = model(torch.ones(5, 3).double()).square().sum()
        loss.backward()
        return float(loss.detach())

    rule.step(closure)


@pytest.mark.system("transfer-learning")
@pytest.mark.system("transfer-learning", "rates")
def test_layer_wise_rates() -> None:
    model = net()
    parts = decay_rates(["0", "1"], rate=0.1, decay=0.5)
    rates = learning_rates(ByPart(AdamW(lr=1e-2), (*parts, Part("2"))).build(model), model)
    assert {name: round(lr / 1e-2, 9) for name, lr in rates.items()} == {
        "0.weight": 0.05, "0.bias": 0.05, "1.weight": 0.1, "1.bias": 0.1, "2.weight": 1.0, "2.bias": 1.0,
    }  # fmt: skip


@pytest.mark.system("transfer-learning")
@pytest.mark.system("transfer-learning", "rates")
def test_a_step_is_that_of_a_rule_for_each_part() -> None:
    ours, theirs = net(), net()
    rule = ByPart(SGD(lr=0.01, momentum=0.5, weight_decay=0.1), (Part("0", 0.1), Part("1", 0.5))).build(ours)
    others = [
        SGD(lr=0.01 * rate, momentum=0.5, weight_decay=0.1).build(part)
        for rate, part in zip((0.1, 0.5, 1.0), theirs, strict=True)
    ]
    for _ in range(3):
        move(ours, rule)
        for other in others:
            other.zero_grad()
        theirs(torch.ones(5, 3).double()).square().sum().backward()
        for other in others:
            other.step()
    for a, b in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert torch.equal(a, b)


@pytest.mark.system("transfer-learning")
@pytest.mark.system("transfer-learning", "thaw")
def test_parts_begin_when_their_time_has_come_also_after_a_resume() -> None:
    model = net()
    parts = (*thaw_parts(decay_rates(["0", "1"], 0.5, 1.0), every=2), Part("2"))
    assert {p.name: p.begins for p in parts} == {"1": 2, "0": 4, "": 4, "2": 0}
    rule = ByPart(AdamW(lr=0.01, weight_decay=0.1), parts).build(model)
    seen = []
    for i in range(6):
        before = [p.detach().clone() for p in model.parameters()]
        if i == 3:  # a checkpoint, and a new process
            saved, twin = copy.deepcopy(rule.state_dict()), net()
            twin.load_state_dict(model.state_dict())
            again = ByPart(AdamW(lr=0.01, weight_decay=0.1), parts).build(twin)
            again.load_state_dict(saved)
        move(model, rule)
        if i >= 3:
            move(twin, again)
        seen.append([not torch.equal(a, b) for a, b in zip(before[::2], list(model.parameters())[::2], strict=True)])
    assert seen == [[False, False, True]] * 2 + [[False, True, True]] * 2 + [[True, True, True]] * 2
    for a, b in zip(model.parameters(), twin.parameters(), strict=True):
        assert torch.equal(a, b)


def test_the_longest_name_decides_and_lbfgs_is_refused() -> None:
    rule = ByPart(SGD(), (Part(""), Part("a", 2.0), Part("a.b", 3.0)))
    assert [rule.part_of(name).rate for name in ("c.w", "a.w", "a.b.w", "ab.w")] == [1.0, 2.0, 3.0, 1.0]
    with pytest.raises(ValueError, match="one learning rate"):
        ByPart(LBFGS(), ()).build(net())
