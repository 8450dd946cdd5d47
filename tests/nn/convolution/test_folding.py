"""A folded network gives the same numbers as the network in evaluation mode."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from descend.nn.convolution.folding import fold, fold_pair
from descend.nn.convolution.residual import BasicBlock
from descend.nn.convolution.unit import ConvUnit, SameConv2d
from tests.close import close


def stir(network: nn.Module, seed: int = 0) -> nn.Module:
    """Running values and scales as after training."""
    generator = torch.Generator().manual_seed(seed)
    for layer in network.modules():
        if isinstance(layer, nn.BatchNorm2d):
            for tensor in (layer.running_mean, layer.bias):
                tensor.data = 0.3 * torch.randn(tensor.shape, generator=generator, dtype=tensor.dtype)
            for tensor in (layer.running_var, layer.weight):
                tensor.data = 0.5 + torch.rand(tensor.shape, generator=generator, dtype=tensor.dtype)
    return network.eval()


NETWORKS = {
    "unit": lambda: ConvUnit(nn.Conv2d(3, 6, 3, 2, 1, groups=3, bias=False), nn.SiLU()),
    "with-bias": lambda: nn.Sequential(nn.Conv2d(3, 4, 3, dilation=2), nn.BatchNorm2d(4), nn.ReLU()),
    "same-padding": lambda: ConvUnit(SameConv2d(3, 4, 3, 2, bias=False), nn.ReLU()),
    "residual": lambda: nn.Sequential(BasicBlock(3, 5, 2), BasicBlock(5, 5)),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_same_numbers_and_no_norm_left(name: str) -> None:
    torch.manual_seed(0)
    network = stir(NETWORKS[name]().double())
    folded, x = fold(network), torch.randn(2, 3, 10, 12, dtype=torch.float64)
    close(folded(x), network(x))
    assert not [m for m in folded.modules() if isinstance(m, nn.BatchNorm2d)]
    assert [m for m in network.modules() if isinstance(m, nn.BatchNorm2d)]  # the network itself is left as it is


def test_the_equation() -> None:
    conv, norm = nn.Conv2d(1, 1, 1, bias=False), nn.BatchNorm2d(1, eps=0.0)
    for tensor, value in ((conv.weight, 3.0), (norm.weight, 2.0), (norm.bias, 1.0)):
        tensor.data.fill_(value)
    norm.running_mean, norm.running_var = torch.tensor([5.0]), torch.tensor([4.0])
    folded = fold_pair(conv.eval(), norm.eval())  # 2 (3x − 5) / 2 + 1
    close(folded(torch.full((1, 1, 1, 1), 7.0)).item(), 17.0)


def test_batch_statistics_cannot_be_folded() -> None:
    with pytest.raises(ValueError, match="depends on the batch"):
        fold_pair(nn.Conv2d(1, 1, 1), nn.BatchNorm2d(1, track_running_stats=False))
