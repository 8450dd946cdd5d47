"""A convolution that becomes one matrix product where maps are small and weights many.

    Y = X_cols Wᵀ          X_cols (b h' w', c k²): a row for each output pixel, holding what its kernel sees

It is torch's convolution, with torch's parameters. On CPUs a convolution rearranges its weights at every call, forward
and twice backward. In the last stage of a ResNet this costs more than the products themselves: 512×512×3×3 weights for
2×2 pixels. The matrix form reads the weights as they lie. It is taken where the weights of an output channel, c k², are
at least sixteen times as many as the output pixels of the batch; elsewhere copying the pixels would cost more.
"""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional as F

RATIO = 16


def columns(x: Tensor, kernel: int, stride: int, padding: int) -> Tensor:
    """What the kernel sees at each output pixel: x (b, c, h, w) -> (b, h', w', c, k, k)."""
    x = F.pad(x.permute(0, 2, 3, 1), (0, 0, padding, padding, padding, padding))
    return x.unfold(1, kernel, stride).unfold(2, kernel, stride)


def matrix_convolution(x: Tensor, weight: Tensor, stride: int, padding: int) -> Tensor:
    """The convolution as a matrix product: x (b, c, h, w), weight (c', c, k, k) -> (b, c', h', w')."""
    cols = columns(x, weight.shape[-1], stride, padding)
    return (cols.flatten(0, 2).flatten(1) @ weight.flatten(1).t()).unflatten(0, cols.shape[:3]).permute(0, 3, 1, 2)


class Convolution(nn.Conv2d):
    """A square convolution without bias, in whichever form is faster."""

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int = 1):
        super().__init__(inputs, outputs, kernel, stride, padding=kernel // 2, bias=False)
        self.numbers = kernel, stride, kernel // 2

    def forward(self, x: Tensor) -> Tensor:
        kernel, stride, padding = self.numbers
        height, width = ((n + 2 * padding - kernel) // stride + 1 for n in x.shape[-2:])
        if x.device.type == "cpu" and RATIO * len(x) * height * width <= self.in_channels * kernel**2:
            return matrix_convolution(x, self.weight, stride, padding)
        return super().forward(x)
