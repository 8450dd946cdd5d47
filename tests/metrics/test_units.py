from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from descend.metrics.units import (
    dead,
    dead_units,
    far_slopes,
    outputs,
    saturated_outputs,
    saturated_share,
    saturated_units,
    saturates,
    slope,
)
from descend.nn.activations import activation
from descend.ops import activations as ops


@pytest.mark.system("saturation-test")
@pytest.mark.system("saturation-test", "per-side")
@pytest.mark.parametrize(
    ("name", "sides"),
    [
        ("sigmoid", (True, True)),
        ("tanh", (True, True)),
        ("arctan", (True, True)),
        ("softsign", (True, True)),
        ("binary-step", (True, True)),
        ("hardtanh", (True, True)),
        ("relu6", (True, True)),
        ("relu", (True, False)),
        ("softplus", (True, False)),
        ("elu", (True, False)),
        ("selu", (True, False)),
        ("silu", (True, False)),
        ("log-sigmoid", (False, True)),
        ("leaky-relu", (False, False)),
        ("prelu", (False, False)),
        ("identity", (False, False)),
        ("tanhshrink", (False, False)),
        ("softshrink", (False, False)),
    ],
)
def test_each_side_of_each_function(name: str, sides: tuple[bool, bool]) -> None:
    assert saturates(activation(name).double()) == sides


@pytest.mark.system("saturation-test")
@pytest.mark.system("saturation-test", "per-side")
def test_limits_of_other_functions() -> None:
    """A logarithm saturates without being bounded, a sine does not although it is bounded; ours of GELU."""
    assert saturates(lambda x: torch.log(1 + x.abs())) == (True, True)
    assert saturates(torch.sin) == (False, False)
    assert saturates(ops.gelu) == (True, False)
    assert far_slopes(lambda x: ops.leaky_relu(x, 0.01)) == (0.01, 1.0)


@pytest.mark.system("dying-relu")
@pytest.mark.system("dying-relu", "counted")
def test_dead_units() -> None:
    a = torch.tensor([[0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 2.0]])
    assert dead_units(a).tolist() == [True, False, True, False]
    assert dead(a) == 0.5
    assert dead(a[None].expand(3, 2, 4)) == 0.5  # tokens
    images = torch.zeros(2, 3, 4, 4)
    images[1, 2, 3, 3] = 0.1  # one place of one image is enough
    assert math.isclose(dead(images, dim=1), 2 / 3)
    assert dead_units(images, dim=1).tolist() == [True, True, False]
    assert dead(torch.tensor([[-3.0, 2.0]])) == 0.5  # pre-activations


@pytest.mark.system("dying-relu")
@pytest.mark.system("dying-relu", "exact-zero")
@pytest.mark.parametrize("name", ["relu", "leaky-relu", "prelu", "elu"])
def test_a_dead_unit_has_a_gradient_of_exactly_zero(name: str) -> None:
    """S940-DLD.13: with a large negative bias; leaky ReLU, PReLU and ELU keep a gradient."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 4), activation(name), nn.Linear(4, 1))
    with torch.no_grad():
        net[0].bias.copy_(torch.tensor([0.0, -10.0, 0.0, 0.0]))
    x = torch.randn(50, 3)
    silent = dead_units(net[0](x))
    assert silent.tolist() == [False, True, False, False]
    net(x).square().sum().backward()
    gradient = net[0].weight.grad[1].abs().max().item()
    assert (gradient == 0) == (name == "relu")
    assert net[0].weight.grad[0].abs().max() > 0


@pytest.mark.system("saturation-test")
@pytest.mark.system("saturation-test", "units")
def test_saturated_units_of_a_net() -> None:
    """Sigmoid and tanh saturate, but only a unit far from 0 is saturated."""
    net = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 2), nn.Sigmoid())
    with torch.no_grad():
        for layer, bias in ((net[0], [0.0, 9.0, -9.0]), (net[2], [0.0, -20.0])):
            layer.weight.fill_(0.1)
            layer.bias.copy_(torch.tensor(bias))
    x = torch.randn(30, 2, generator=torch.Generator().manual_seed(0))
    (h,), (p,) = (list(outputs(net, kind, x).values()) for kind in (nn.Tanh, nn.Sigmoid))
    assert saturated_units(h, -1, 1).tolist() == [False, True, True]
    assert math.isclose(saturated_share(h, -1, 1), 2 / 3)
    assert math.isclose(saturated_outputs(h, -1, 1), 2 / 3)
    assert saturated_share(p) == 0.5
    assert saturated_outputs(torch.tensor([[0.5, 1.0], [0.001, 0.2]])) == 0.5
    assert saturated_share(torch.tensor([[0.5, 1.0], [0.001, 0.2]])) == 0  # at an end at times, not always


def test_outputs_by_name_and_no_hook_stays() -> None:
    net = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Sequential(nn.Linear(3, 4), nn.ReLU()))
    found = outputs(net, nn.ReLU, torch.randn(5, 2))
    assert {name: tuple(a.shape) for name, a in found.items()} == {"1": (5, 3), "2.1": (5, 4)}
    assert not any(m._forward_hooks for m in net.modules())
    with pytest.raises(RuntimeError):
        outputs(net, nn.ReLU, torch.randn(5, 7))
    assert not any(m._forward_hooks for m in net.modules())


def test_slope_is_the_derivative() -> None:
    assert slope(lambda x: x**3, torch.tensor([2.0, -1.0])).tolist() == [12, 3]
