"""The blocks of EfficientNets against their equations."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from descend.nn.convolution.inverted import InvertedBlock, SqueezeExcite
from tests.close import close


def normalise(x: Tensor, layer: torch.nn.BatchNorm2d) -> Tensor:
    """With the running moments, ε = 10⁻³."""
    scale = layer.weight / (layer.running_var + 1e-3).sqrt()
    return x * scale[:, None, None] + (layer.bias - layer.running_mean * scale)[:, None, None]


@pytest.mark.system("efficientdet")
@pytest.mark.parametrize(
    ("inputs", "outputs", "kernel", "stride", "expand"), [(8, 8, 3, 1, 6), (8, 12, 5, 2, 6), (8, 8, 3, 1, 1)]
)
def test_a_block_is_its_equations(inputs: int, outputs: int, kernel: int, stride: int, expand: int) -> None:
    torch.manual_seed(0)
    block = InvertedBlock(inputs, outputs, kernel, stride, expand).double()
    with torch.no_grad():
        for layer in block.modules():
            if isinstance(layer, torch.nn.BatchNorm2d):
                layer.running_mean.normal_()
                layer.running_var.uniform_(0.5, 2)
                layer.weight.normal_()
                layer.bias.normal_()
    x = torch.randn(2, inputs, 7, 9, dtype=torch.float64)
    block.eval()
    h = x
    if expand > 1:
        h = F.silu(normalise(torch.einsum("oi,bihw->bohw", block.widen.weight[..., 0, 0], x), block.norm_1))
    h = F.conv2d(h, block.filter.weight, stride=stride, padding=kernel // 2, groups=h.shape[1])
    h = F.silu(normalise(h, block.norm_2))
    s = F.silu(h.mean(dim=(2, 3)) @ block.weigh.squeeze.weight[..., 0, 0].T + block.weigh.squeeze.bias)
    s = torch.sigmoid(s @ block.weigh.excite.weight[..., 0, 0].T + block.weigh.excite.bias)
    y = torch.einsum("oi,bihw->bohw", block.narrow.weight[..., 0, 0], h * s[:, :, None, None])
    y = normalise(y, block.norm_3)
    close(block(x), x + y if stride == 1 and inputs == outputs else y)


def test_gradients() -> None:
    torch.manual_seed(0)
    layer, x = SqueezeExcite(3, 2).double(), torch.randn(2, 3, 2, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(layer, (x,))
