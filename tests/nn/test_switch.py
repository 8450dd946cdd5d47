"""The Switch layer: one expert a token, dropped tokens, constant cost."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from descend.nn.experts import Experts
from descend.nn.switch import Switch, SwitchRouter
from tests.close import close


def layer(experts: int = 4, factor: float = 4.0, jitter: float = 0.0) -> Switch:
    torch.manual_seed(0)
    return Switch(SwitchRouter(6, experts, jitter), Experts(6, 10, experts, nn.SiLU()), factor).double()


def x() -> Tensor:
    return torch.randn(2, 9, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


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


@pytest.mark.system("switch-transformer")
def test_tokens_beyond_the_capacity_are_zero() -> None:
    free, full = layer(factor=4.0), layer(factor=0.5)  # ⌈0.5 · 18 / 4⌉ = 3 tokens an expert
    index = free.router(x().flatten(0, 1)).chosen[:, 0]
    place = torch.stack([(index[: i + 1] == e).sum() for i, e in enumerate(index)])
    kept = (place <= 3).view(2, 9, 1)
    assert 0 < kept.sum() < 18
    close(full(x()), free(x()) * kept)


@pytest.mark.system("switch-transformer")
def test_one_expert_is_the_plain_network() -> None:
    switch, tokens = layer(1), x()
    up, gate, down = (w[0] for w in (switch.experts.up, switch.experts.gate, switch.experts.down))
    close(switch(tokens), (nn.functional.silu(tokens @ gate.T) * (tokens @ up.T)) @ down.T)


@pytest.mark.system("switch-transformer")
def test_parameters_grow_and_jitter_is_for_training() -> None:
    sizes = [sum(p.numel() for p in layer(n).parameters()) for n in (2, 4, 8)]
    assert sizes[2] - sizes[1] == 2 * (sizes[1] - sizes[0])
    noisy = layer(jitter=0.5)
    assert not torch.equal(noisy(x()), noisy(x()))
    assert torch.equal(noisy.eval()(x()), layer()(x()))
