"""The Q-network against the same layers in torch.nn.Sequential."""

from __future__ import annotations

import torch
from torch import nn

from descend.models.q_network import QNetwork, QNetworkConfig
from tests.close import close


def test_is_a_relu_perceptron() -> None:
    torch.manual_seed(0)
    model = QNetwork(QNetworkConfig(observations=4, actions=3, width=16, depth=2))
    plain = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 3))
    plain.load_state_dict(dict(zip(plain.state_dict(), model.state_dict().values(), strict=True)))
    x = torch.randn(5, 4)
    close(model(x), plain(x))
    assert sum(p.numel() for p in model.parameters()) == (4 + 1) * 16 + (16 + 1) * 16 + (16 + 1) * 3


def test_without_hidden_layers_it_is_linear() -> None:
    """Depth 0 on one-hot states is the table of tabular Q-learning."""
    torch.manual_seed(0)
    model = QNetwork(QNetworkConfig(observations=3, actions=2, depth=0))
    close(model(torch.eye(3)), model.out.weight.T + model.out.bias)
