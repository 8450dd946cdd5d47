"""The penalty toward pretrained weights: 2 λ (θ − θ_pre), over all weights, from a copy that does not move."""

from __future__ import annotations

import pytest
import torch

from descend.engine.minimise import minimise
from descend.losses.pretrained import PretrainedPenalty, distance_to_pretrained
from descend.models.llama import Llama, LlamaConfig
from descend.optim.rules import SGD
from tests.close import close


def small(tied: bool = True) -> Llama:
    torch.manual_seed(0)
    return Llama(LlamaConfig(vocab=11, context=8, width=8, depth=1, heads=2, kv_heads=2, hidden=8, tied=tied)).double()


@pytest.mark.system("pretrained-weight-penalty")
@pytest.mark.system("pretrained-weight-penalty", "gradient")
@pytest.mark.parametrize("tied", [True, False])
def test_the_gradient_is_twice_lambda_times_the_way_so_far(tied: bool) -> None:
    model = small(tied)
    penalty = PretrainedPenalty(model, 0.3)
    assert penalty(model).item() == 0
    before = {name: p.clone() for name, p in model.named_parameters()}
    with torch.no_grad():
        for p in model.parameters():
            p.add_(torch.randn_like(p))
    value = penalty(model)
    value.backward()
    for name, p in model.named_parameters():
        assert p.grad is not None
        close(p.grad, 2 * 0.3 * (p - before[name]))
    way = torch.cat([(p - before[name]).flatten() for name, p in model.named_parameters()])
    close(value, 0.3 * way.norm() ** 2)
    close(distance_to_pretrained(model, penalty.pretrained), way @ way)


@pytest.mark.system("pretrained-weight-penalty", "limits")
def test_between_plain_fine_tuning_and_staying_where_it_was() -> None:
    """½ h (w − w*)² + λ (w − w_pre)² has its minimum at (h w* + 2 λ w_pre) / (h + 2 λ)."""
    h, goal, start = 1.5, 4.0, 1.0
    found = {}
    for weight in (0.0, 0.4, 1e6):
        model = torch.nn.Linear(1, 1, bias=False).double()
        torch.nn.init.constant_(model.weight, start)
        penalty = PretrainedPenalty(model, weight)
        loss = lambda m=model, p=penalty: 0.5 * h * (m.weight - goal).square().sum() + p(m)
        minimise(model, loss, 400, SGD(0.4 / (h + 2 * weight)))
        found[weight] = float(model.weight)
        close(found[weight], (h * goal + 2 * weight * start) / (h + 2 * weight))
        assert float(penalty.pretrained.weight) == start
        assert not penalty.pretrained.weight.requires_grad
    assert found[0.0] == pytest.approx(goal)
    assert found[1e6] == pytest.approx(start, abs=1e-5)
