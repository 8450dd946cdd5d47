"""The separable layer is a dense one of low rank; the averaged transposed layer is the readable form."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from descend.nn.convolution.layers import AveragedConvTranspose2d, SeparableConv2d
from descend.ops.images.convolution import Slide
from descend.ops.images.resampling import averaged_transposed_convolution
from descend.theory.convolution import separable_macs
from descend.theory.network import layers
from tests.close import close


@pytest.mark.system("depthwise-separable-convolution")
@pytest.mark.system("depthwise-separable-convolution", "outer-product")
@pytest.mark.parametrize(("stride", "padding", "dilation"), [(1, 0, 1), (2, 1, 1), (1, 2, 2)])
def test_equals_the_dense_layer_with_the_outer_product(stride: int, padding: int, dilation: int) -> None:
    torch.manual_seed(0)
    layer = SeparableConv2d(4, 6, 3, stride, padding, dilation).double()
    x = torch.randn(2, 4, 9, 8, dtype=torch.float64)
    dense = layer.dense_weight()
    assert dense.shape == (6, 4, 3, 3)
    close(layer(x), F.conv2d(x, dense, layer.pointwise.bias, stride, padding, dilation))
    # Each input channel has one shape only: its slice of the dense kernel has rank 1.
    assert all(torch.linalg.matrix_rank(dense[:, c].flatten(1)) == 1 for c in range(4))


@pytest.mark.system("depthwise-separable-convolution")
@pytest.mark.system("depthwise-separable-convolution", "drop-in", "counted")
def test_a_drop_in_with_the_counted_cost() -> None:
    ours, full = SeparableConv2d(16, 32, 3, padding=1), nn.Conv2d(16, 32, 3, padding=1)
    x = torch.zeros(1, 16, 10, 12)
    assert ours(x).shape == full(x).shape
    cost = separable_macs(16, 32, (3, 3), (10, 12))
    assert layers(ours, x).flops == 2 * (cost.depthwise + cost.pointwise)
    assert layers(full, x).flops == 2 * cost.standard
    assert torch.equal(ours.depthwise(x), F.conv2d(x, ours.depthwise.weight, padding=1, groups=16))


@pytest.mark.system("depthwise-separable-convolution")
@pytest.mark.system("depthwise-separable-convolution", "gradients")
@pytest.mark.system("transposed-convolution")
@pytest.mark.system("transposed-convolution", "gradients")
def test_gradients() -> None:
    torch.manual_seed(0)
    x = torch.randn(1, 2, 4, 4, dtype=torch.float64, requires_grad=True)
    for layer in (SeparableConv2d(2, 3, 3), AveragedConvTranspose2d(2, 3, 3, 2)):
        assert torch.autograd.gradcheck(layer.double(), (x,))
        layer(x).sum().backward()
        assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in layer.parameters())


@pytest.mark.system("transposed-convolution")
@pytest.mark.system("transposed-convolution", "overlaps")
@pytest.mark.parametrize(("kernel", "stride", "padding"), [(3, 2, 0), (3, 2, 1), (2, 2, 0), (3, 1, 1), (2, 3, 0)])
def test_averaged_layer(kernel: int, stride: int, padding: int) -> None:
    torch.manual_seed(0)
    layer = AveragedConvTranspose2d(3, 2, kernel, stride, padding).double()
    x = torch.randn(2, 3, 4, 5, dtype=torch.float64)
    close(layer(x), averaged_transposed_convolution(x, layer.weight, layer.bias, Slide(stride, padding)))
    like = nn.ConvTranspose2d(3, 2, kernel, stride, padding).double()
    like.load_state_dict(layer.state_dict())
    same = torch.allclose(layer(x), like(x))
    assert same is (kernel <= stride), "without overlaps sum and mean are one"
