"""The gated network: MF's letters, the relatives, LLaMA's hidden size."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from descend.models.llama import SIZES
from descend.nn.gated_mlp import GatedMLP, hidden_size
from tests.close import close


@pytest.mark.system("swiglu-ffn", "gate", "parameters")
@pytest.mark.system("swiglu-ffn")
def test_swiglu_is_its_equation() -> None:
    torch.manual_seed(0)
    mlp, x = GatedMLP(5, 7, nn.SiLU()).double(), torch.randn(3, 5, dtype=torch.float64, requires_grad=True)
    w_1, w_2, w_3 = mlp.up.weight, mlp.gate.weight, mlp.down.weight
    z = x @ w_2.T
    close(mlp(x), ((x @ w_1.T) * (z * z.sigmoid())) @ w_3.T)
    assert sum(p.numel() for p in mlp.parameters()) == 3 * 5 * 7
    assert torch.autograd.gradcheck(mlp, x)


@pytest.mark.system("swiglu-ffn", "relatives")
@pytest.mark.system("swiglu-ffn")
def test_a_sigmoid_makes_the_gated_linear_unit_of_torch() -> None:
    torch.manual_seed(0)
    mlp, x = GatedMLP(5, 7, nn.Sigmoid()).double(), torch.randn(3, 5, dtype=torch.float64)
    both = F.linear(x, torch.cat([mlp.up.weight, mlp.gate.weight]))
    close(mlp(x), F.linear(F.glu(both), mlp.down.weight))


@pytest.mark.system("swiglu-ffn")
def test_the_hidden_sizes_of_llama() -> None:
    for name in ("7b", "13b", "33b", "65b"):
        config = SIZES[f"llama-{name}"]
        assert hidden_size(config.width) == config.hidden
