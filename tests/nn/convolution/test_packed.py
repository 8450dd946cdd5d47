"""Packed weights change nothing but the time."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from descend.nn.convolution.packed import PackedConv2d
from descend.optim.rules import SGD, AdamW
from tests.close import close


@pytest.mark.parametrize(("stride", "padding"), [(1, 1), (2, 0), (2, 1)])
def test_it_is_torchs_convolution_bit_for_bit(stride: int, padding: int) -> None:
    torch.manual_seed(0)
    ours = PackedConv2d(16, 32, 3, stride=stride, padding=padding).eval()
    theirs = nn.Conv2d(16, 32, 3, stride=stride, padding=padding).eval()
    theirs.load_state_dict(ours.state_dict())
    with torch.no_grad():
        for side in (8, 8, 12):
            x = torch.randn(2, 16, side, side).contiguous(memory_format=torch.channels_last)
            assert torch.equal(ours(x), theirs(x))


@pytest.mark.parametrize("rule", [AdamW(lr=0.1), SGD(lr=0.1)])
def test_a_training_step_between_two_evaluations_is_seen(rule: Any) -> None:
    torch.manual_seed(0)
    layer, x = PackedConv2d(8, 8, 3, padding=1), torch.randn(1, 8, 6, 6)
    optimizer = rule.build(layer)
    for _ in range(3):
        with torch.no_grad():
            close(layer.eval()(x), nn.functional.conv2d(x, layer.weight, layer.bias, padding=1))
        layer.train()
        layer(x).square().mean().backward()
        optimizer.step()


def test_changed_weights_are_packed_anew() -> None:
    torch.manual_seed(0)
    layer, x = PackedConv2d(8, 8, 3, padding=1).eval(), torch.randn(1, 8, 6, 6)
    with torch.no_grad():
        first = layer(x)
        layer.weight.mul_(2)
        layer.bias.mul_(2)  # type: ignore[union-attr]
        assert torch.allclose(layer(x), 2 * first, rtol=1e-5, atol=1e-6)
        layer.weight = nn.Parameter(torch.zeros_like(layer.weight))
        assert torch.allclose(layer(x), layer.bias[:, None, None].expand(8, 6, 6), atol=1e-6)  # type: ignore[index]
    assert layer(x).requires_grad
    assert set(layer.state_dict()) == {"weight", "bias"}
    half = layer.to(torch.bfloat16)
    with torch.no_grad():
        assert half(x.bfloat16()).dtype == torch.bfloat16
