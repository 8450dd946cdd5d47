"""The locally connected layer: a convolution when its filters are tied, its parameter count, its gradients."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from descend.nn.convolution.local import LocallyConnected2d
from tests.close import close


@pytest.mark.system("deepface-verification")
@pytest.mark.system("deepface-verification", "untied-weights")
@pytest.mark.parametrize(("kernel", "stride"), [(3, 1), (2, 2), (3, 2)])
def test_with_the_same_filter_everywhere_it_is_the_convolution(kernel: int, stride: int) -> None:
    torch.manual_seed(0)
    x, conv = torch.randn(4, 3, 9, 7), nn.Conv2d(3, 5, kernel, stride)
    layer = LocallyConnected2d(3, 5, (9, 7), kernel, stride)
    with torch.no_grad():
        layer.weight.copy_(conv.weight.flatten(1).expand_as(layer.weight))
        layer.bias.copy_(conv.bias[:, None, None].expand_as(layer.bias))
    close(layer(x), conv(x))


@pytest.mark.system("deepface-verification")
@pytest.mark.system("deepface-verification", "untied-weights")
def test_every_place_has_weights_of_its_own() -> None:
    layer = LocallyConnected2d(3, 5, (9, 7), 3)
    places = 7 * 5
    assert sum(p.numel() for p in layer.parameters()) == places * 3 * 3 * 3 * 5 + places * 5
    x = torch.randn(1, 3, 1, 1).expand(1, 3, 9, 7)  # the same patch everywhere: a convolution would say the same
    y = layer(x)[0, 0]
    assert y.std() > 0.1
    layer(x)[0, :, 2, 3].sum().backward()
    assert (layer.weight.grad.abs().sum((1, 2)) > 0).nonzero().tolist() == [[2 * 5 + 3]]


def test_gradients_and_wrong_sizes() -> None:
    layer = LocallyConnected2d(2, 3, (4, 4), 3).double()
    assert torch.autograd.gradcheck(layer, (torch.randn(2, 2, 4, 4, dtype=torch.float64, requires_grad=True),))
    with pytest.raises(ValueError, match="weights for"):
        layer(torch.zeros(1, 2, 5, 4, dtype=torch.float64))
    with pytest.raises(ValueError, match="smaller than the kernel"):
        LocallyConnected2d(1, 1, (2, 5), 3)
