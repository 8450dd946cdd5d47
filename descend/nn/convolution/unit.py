"""The unit of modern convolutional networks: convolution, batch norm, nonlinearity.

    y = f(γ (W * x − μ) / √(σ² + ε) + β)        no bias beside W: β takes its part

`SameConv2d` pads as TensorFlow does, so that a stride s gives ⌈n/s⌉ outputs. The padding is what that needs,

    p = max((⌈n/s⌉ − 1) s + d (k − 1) + 1 − n, 0)        d the dilation, k the kernel

half of it before the image and the larger half behind: with stride 2 on an even image one pixel behind, none before. A
PyTorch convolution pads both sides alike; weights of the one are wrong by a shift of a pixel in the other.
"""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional as F


class ConvUnit(nn.Module):
    """act(norm(conv(x)))"""

    def __init__(self, conv: nn.Conv2d, act: nn.Module, eps: float = 1e-5):
        super().__init__()
        self.conv = conv
        self.norm = nn.BatchNorm2d(conv.out_channels, eps)
        self.act = act

    def forward(self, x: Tensor) -> Tensor:
        return self.act(self.norm(self.conv(x)))


class SameConv2d(nn.Conv2d):
    """A convolution of ⌈n/s⌉ outputs, padded behind where it cannot be padded evenly."""

    def forward(self, input: Tensor) -> Tensor:
        sides = zip(input.shape[-2:], self.kernel_size, self.stride, self.dilation, strict=True)
        (top, bottom), (left, right) = (same_padding(*side) for side in sides)
        return super().forward(F.pad(input, (left, right, top, bottom)))


def same_padding(n: int, kernel: int, stride: int, dilation: int = 1) -> tuple[int, int]:
    """Zeros before and behind n pixels for ⌈n/stride⌉ outputs."""
    total = max((-(-n // stride) - 1) * stride + dilation * (kernel - 1) + 1 - n, 0)
    return total // 2, total - total // 2
