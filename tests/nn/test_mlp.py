from __future__ import annotations

import pytest
import torch
from torch import nn

from descend.nn.mlp import MLP
from tests.close import close

SLUG = "position-wise-ffn"


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
