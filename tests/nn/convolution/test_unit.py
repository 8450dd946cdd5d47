"""Convolution, norm and activation as one unit; TensorFlow's padding against its definition."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from descend.nn.convolution.unit import ConvUnit, SameConv2d, same_padding
from tests.close import close


@pytest.mark.system("mobilenet-and-xception")
def test_a_unit_is_its_equation() -> None:
    torch.manual_seed(0)
    unit = ConvUnit(nn.Conv2d(3, 5, 3, padding=1, bias=False), nn.ReLU6(), eps=0.01).double().eval()
    norm, x = unit.norm, torch.randn(2, 3, 6, 7, dtype=torch.float64)
    assert norm.running_mean is not None
    assert norm.running_var is not None
    with torch.no_grad():
        for value in (norm.weight, norm.bias, norm.running_mean):
            value.copy_(torch.randn(5))
        norm.running_var.copy_(torch.rand(5) + 0.5)
        z = F.conv2d(x, unit.conv.weight, padding=1)
        gamma, beta, mean, var = (
            v[:, None, None] for v in (norm.weight, norm.bias, norm.running_mean, norm.running_var)
        )
        close(unit(x), (gamma * (z - mean) / (var + 0.01).sqrt() + beta).clamp(0, 6))


@pytest.mark.parametrize(
    ("n", "kernel", "stride", "dilation", "expected"),
    [
        (224, 3, 2, 1, (0, 1)),  # even side, stride 2: only behind
        (225, 3, 2, 1, (1, 1)),
        (10, 3, 1, 1, (1, 1)),
        (10, 1, 2, 1, (0, 0)),
        (10, 3, 1, 4, (4, 4)),
        (7, 2, 1, 1, (0, 1)),
    ],
)
def test_padding(n: int, kernel: int, stride: int, dilation: int, expected: tuple[int, int]) -> None:
    assert same_padding(n, kernel, stride, dilation) == expected


@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("side", [(8, 9), (5, 12)])
def test_the_size_is_a_share_of_the_input_rounded_up(stride: int, side: tuple[int, int]) -> None:
    torch.manual_seed(0)
    conv, x = SameConv2d(2, 4, 3, stride, groups=2, bias=False), torch.randn(1, 2, *side)
    assert conv(x).shape[-2:] == tuple(math.ceil(n / stride) for n in side)
    # The first output sits at the window that starts `before` pixels outside the image.
    before = [same_padding(n, 3, stride)[0] for n in side]
    wide = F.pad(x, (3, 3, 3, 3))[:, :, 3 - before[0] :, 3 - before[1] :]
    close(
        conv(x)[0, :, 0, 0], torch.einsum("cij,cij->c", wide[0, :, :3, :3].repeat_interleave(2, 0), conv.weight[:, 0])
    )
