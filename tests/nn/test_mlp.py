from __future__ import annotations

import pytest
import torch
from torch import nn

from descend.nn.mlp import MLP
from tests.close import close

SLUG = "position-wise-ffn"


@pytest.mark.system(SLUG, "convolution")
@pytest.mark.system(SLUG)
@pytest.mark.parametrize("activation", [nn.ReLU(), nn.GELU()], ids=["relu", "gelu"])
def test_is_two_convolutions_of_width_1(activation: nn.Module) -> None:
    torch.manual_seed(0)
    mlp = MLP(6, 24, activation).double()
    x = torch.randn(2, 5, 6, dtype=torch.float64)
    up, down = nn.Conv1d(6, 24, 1).double(), nn.Conv1d(24, 6, 1).double()
    up.load_state_dict({"weight": mlp.up.weight[..., None], "bias": mlp.up.bias})
    down.load_state_dict({"weight": mlp.down.weight[..., None], "bias": mlp.down.bias})
    close(mlp(x), down(activation(up(x.mT))).mT)


@pytest.mark.system(SLUG, "each-position")
@pytest.mark.system(SLUG)
def test_every_position_alone() -> None:
    torch.manual_seed(1)
    mlp = MLP(6, 24, nn.ReLU()).double()
    x = torch.randn(3, 5, 6, dtype=torch.float64)
    close(mlp(x)[:, 2], mlp(x[:, 2]))
    order = torch.tensor([4, 2, 0, 3, 1])
    close(mlp(x[:, order]), mlp(x)[:, order])
    assert mlp.up.weight.shape == (24, 6), "W_1 is stored as hidden × width"
    assert sum(p.numel() for p in mlp.parameters()) == 2 * 6 * 24 + 24 + 6
    assert torch.autograd.gradcheck(mlp, (x[:1, :2].clone().requires_grad_(),))


@pytest.mark.system(SLUG, "parameters")
def test_parameters_at_base_size() -> None:
    with torch.device("meta"):
        mlp = MLP(512, 2048, nn.ReLU())
    assert mlp.up.weight.shape == (2048, 512)
    assert sum(p.numel() for p in mlp.parameters()) == 2 * 512 * 2048 + 2048 + 512 == 2_099_712


@pytest.mark.system(SLUG, "active-units")
def test_active_units_of_each_token() -> None:
    """VOM 9.8.10: the third unit speaks for (4, 2) and not for (3, 4); at each position anew."""
    mlp = MLP(2, 3, nn.ReLU()).double()
    with torch.no_grad():
        mlp.up.weight.copy_(torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.5, -0.5]]))
        mlp.up.bias.zero_()
    x = torch.tensor([[[3.0, 4.0], [4.0, 2.0]]], dtype=torch.float64)
    assert mlp.active_units(x).tolist() == [[[True, True, False], [True, True, True]]]
    silent = ~mlp.active_units(x)[0, 0]
    before = mlp(x)[0, 0].clone()
    with torch.no_grad():
        mlp.down.weight[:, silent] += 7.0
    close(mlp(x)[0, 0], before)  # what is not active has no say
    assert (mlp(x)[0, 1] - before).abs().max() > 1


@pytest.mark.system(SLUG, "collapse")
def test_without_the_activation_it_is_one_linear_map() -> None:
    torch.manual_seed(2)
    x = torch.randn(2, 5, 6, dtype=torch.float64)
    flat, bent = (MLP(6, 24, activation).double() for activation in (nn.Identity(), nn.ReLU()))
    for mlp, collapses in ((flat, True), (bent, False)):
        w = mlp.down.weight @ mlp.up.weight
        b = mlp.down.weight @ mlp.up.bias + mlp.down.bias
        assert torch.allclose(mlp(x), x @ w.T + b) == collapses
