"""One hidden layer of width N: its count, its equality with an MLP, and that width helps."""

from __future__ import annotations

import pytest
import torch

from descend.models.mlp import MLP, MLPConfig
from descend.models.shallow_network import ShallowNetwork, ShallowNetworkConfig
from tests.close import close


@pytest.mark.system("shallow-network")
@pytest.mark.system("shallow-network", "count")
@pytest.mark.parametrize(("d", "n"), [(1, 1), (2, 7), (5, 40)])
def test_parameters_are_n_times_d_plus_2(d: int, n: int) -> None:
    model = ShallowNetwork(ShallowNetworkConfig(inputs=d, width=n))
    assert sum(p.numel() for p in model.parameters()) == n * (d + 2)


@pytest.mark.system("shallow-network")
@pytest.mark.system("shallow-network", "form")
@pytest.mark.parametrize("activation", ["tanh", "relu", "sigmoid"])
def test_is_an_mlp_without_output_bias_and_the_sum_over_units(activation: str) -> None:
    torch.manual_seed(0)
    model = ShallowNetwork(ShallowNetworkConfig(3, 6, 1, activation))  # type: ignore[arg-type]
    mlp = MLP(MLPConfig(3, (6,), 1, activations=(activation,)))  # type: ignore[arg-type]
    hidden, out = model.hidden, model.out
    state = {"layers.0.weight": hidden.weight, "layers.0.bias": hidden.bias, "layers.1.weight": out.weight}
    mlp.load_state_dict({**state, "layers.1.bias": torch.zeros(1)})
    x = torch.randn(4, 3)
    close(model(x), mlp(x))
    units = {"tanh": torch.tanh, "relu": torch.relu, "sigmoid": torch.sigmoid}[activation](
        (x[:, None] * hidden.weight).sum(-1) + hidden.bias
    )
    close(model(x)[:, 0], (out.weight[0] * units).sum(-1))


@pytest.mark.system("shallow-network")
@pytest.mark.system("shallow-network", "width")
@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("activation", ["tanh", "sigmoid", "relu"])
def test_error_falls_with_width(activation: str, seed: int) -> None:
    """A continuous target on 0..1: the read-out fitted by least squares on random hidden units."""
    x = torch.linspace(0, 1, 200, dtype=torch.float64)[:, None]
    y = (6 * x).sin() * x
    errors = []
    for width in (2, 8, 64):
        torch.manual_seed(seed)
        model = ShallowNetwork(ShallowNetworkConfig(1, width, 1, activation)).double()  # type: ignore[arg-type]
        with torch.no_grad():
            model.hidden.weight.mul_(8)
            model.hidden.bias.mul_(8)
            units = {"tanh": torch.tanh, "relu": torch.relu, "sigmoid": torch.sigmoid}[activation](model.hidden(x))
            model.out.weight.copy_(torch.linalg.lstsq(units, y, driver="gelsd").solution.T)
            errors.append(float((model(x) - y).square().mean()))
    assert errors[0] > 2 * errors[1] > 10 * errors[2]
