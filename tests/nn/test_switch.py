"""The Switch layer: one expert a token, dropped tokens, constant cost."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from descend.nn.experts import Experts
from descend.nn.switch import Switch, SwitchRouter
from tests.close import close


def layer(experts: int = 4, factor: float = 4.0, jitter: float = 0.0) -> Switch:
    torch.manual_seed(0)
    return Switch(SwitchRouter(6, experts, jitter), Experts(6, 10, experts, nn.SiLU()), factor).double()


def x() -> Tensor:
    return torch.randn(2, 9, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


@pytest.mark.system("switch-transformer", "top-1")
@pytest.mark.system("switch-transformer")
def test_the_equation() -> None:
    switch, tokens = layer(), x()
    p = switch.router.gate(tokens).softmax(-1)
    best = p.argmax(-1)
    up, gate, down = (w[best] for w in (switch.experts.up, switch.experts.gate, switch.experts.down))
    hidden = nn.functional.silu(torch.einsum("bthd,btd->bth", gate, tokens)) * torch.einsum("bthd,btd->bth", up, tokens)
    close(switch(tokens), p.amax(-1, keepdim=True) * torch.einsum("btdh,bth->btd", down, hidden))
    switch(tokens).sum().backward()
    grad = switch.router.gate.weight.grad
    assert grad is not None
    assert grad.abs().sum() > 0


@pytest.mark.system("switch-transformer", "capacity")
@pytest.mark.system("switch-transformer")
def test_tokens_beyond_the_capacity_are_zero() -> None:
    free, full = layer(factor=4.0), layer(factor=0.5)  # ⌈0.5 · 18 / 4⌉ = 3 tokens an expert
    index = free.router(x().flatten(0, 1)).chosen[:, 0]
    place = torch.stack([(index[: i + 1] == e).sum() for i, e in enumerate(index)])
    kept = (place <= 3).view(2, 9, 1)
    assert 0 < kept.sum() < 18
    close(full(x()), free(x()) * kept)


@pytest.mark.system("switch-transformer", "one-expert")
@pytest.mark.system("switch-transformer")
def test_one_expert_is_the_plain_network() -> None:
    switch, tokens = layer(1), x()
    up, gate, down = (w[0] for w in (switch.experts.up, switch.experts.gate, switch.experts.down))
    close(switch(tokens), (nn.functional.silu(tokens @ gate.T) * (tokens @ up.T)) @ down.T)


@pytest.mark.system("switch-transformer", "parameters")
@pytest.mark.system("switch-transformer")
def test_parameters_grow_and_jitter_is_for_training() -> None:
    sizes = [sum(p.numel() for p in layer(n).parameters()) for n in (2, 4, 8)]
    assert sizes[2] - sizes[1] == 2 * (sizes[1] - sizes[0])
    noisy = layer(jitter=0.5)
    assert not torch.equal(noisy(x()), noisy(x()))
    assert torch.equal(noisy.eval()(x()), layer()(x()))


@pytest.mark.system("switch-transformer")
def test_the_jitter_lies_between_one_minus_and_one_plus() -> None:
    """With W = (1, 0)ᵀ the log-ratio of both gates is the jittered input itself."""
    torch.manual_seed(0)
    router = SwitchRouter(1, 2, jitter=0.25)
    with torch.no_grad():
        router.gate.weight.copy_(torch.tensor([[1.0], [0.0]]))
    p = router(torch.ones(4000, 1)).p
    factor = (p[:, 0] / p[:, 1]).log()
    assert 0.75 - 1e-5 <= factor.min() < 0.755
    assert 1.245 < factor.max() <= 1.25 + 1e-5
    assert abs(factor.mean() - 1) < 0.01  # 4000 draws: ± 0.0023
    p = router.eval()(torch.ones(3, 1)).p
    close((p[:, 0] / p[:, 1]).log(), torch.ones(3))


@pytest.mark.system("switch-transformer", "flops")
def test_a_token_costs_the_same_with_many_experts() -> None:
    """But for the router's row: 2 · 6 FLOPs a token and expert."""

    def flops(experts: int) -> int:
        switch = layer(experts, factor=experts)  # room for all
        with FlopCounterMode(display=False) as counter, torch.no_grad():
            switch(x())
        return counter.get_total_flops() - 2 * 18 * 6 * experts

    assert flops(2) == flops(4) == flops(32) == 2 * 18 * 3 * 6 * 10


@pytest.mark.system("switch-transformer", "capacity")
def test_a_dropped_token_passes_through_the_residual() -> None:
    full = layer(factor=0.5)
    with torch.no_grad():
        y = x() + full(x())
        dropped = (full(x()) == 0).all(-1)
    assert 0 < dropped.sum() < 18
    assert torch.equal(y[dropped], x()[dropped])
    assert (y[~dropped] != x()[~dropped]).any(-1).all()
