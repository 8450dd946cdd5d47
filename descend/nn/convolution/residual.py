"""Residual blocks: layers that learn the difference from their input, H(x) = F(x) + x.

    residual           y = x + F(x)                       S940, VOM, DLN: no activation after the sum
    post-activation    y = ReLU(F(x) + S(x))              MF 22.2.1 and the first ResNets
    basic              F = BN conv3×3 · ReLU · BN conv3×3
    bottleneck         F = BN conv1×1 · ReLU · BN conv3×3 · ReLU · BN conv1×1        C/4, C/4, C channels:
                       17/16 C² weights against 18 C² of two full 3×3 convolutions
    pre-activation     y = S(x) + F(x)                    F = conv3×3 · ReLU · BN · conv3×3 · ReLU · BN (from the right)

The shortcut S is the identity where shapes agree. Where they differ it is a projection W x (1×1 convolution and batch
norm), or it drops pixels and fills the new channels with zeros, which needs no weights. With F = 0 the residual block
is the identity and the post-activation block is ReLU(x). The Jacobian is I + ∂F/∂x: the gradient of the output reaches
the input unchanged beside what passes through F.

Where batch norm, ReLU and the sum stand is a class each (He et al. 2016, "Identity mappings"; DLN's figure of them is
missing). The last two leave the path x → y untouched from the first block to the last.

    BasicBlock            conv BN ReLU conv BN, sum, ReLU        the original
    NormAfterSum          conv BN ReLU conv, sum, BN ReLU
    ReluBeforeSum         conv BN ReLU conv BN ReLU, sum         F ≥ 0: the stream can only grow
    ReluOnlyPreactivation ReLU conv BN ReLU conv BN, sum
    Preactivation         BN ReLU conv BN ReLU conv, sum         full pre-activation
    PlainBlock            conv BN ReLU conv BN ReLU              no shortcut: the twin of BasicBlock

Convolutions have no bias, since a batch norm follows, and start from He's normal distribution over fan_out.

Systems: residual-block, bottleneck-block, preactivation-block
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from descend.nn.convolution.small_maps import Convolution


def channels_last(x: Tensor) -> Tensor:
    """The same numbers with the channels of a pixel side by side in memory, as convolutions on CPUs like them."""
    return x.contiguous(memory_format=torch.channels_last)


class Residual(nn.Module):
    """y = x + f(x) around any layer that keeps its input's shape."""

    def __init__(self, f: nn.Module):
        super().__init__()
        self.f = f

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.f(x)
        if y.shape != x.shape:
            raise ValueError(f"f makes {tuple(y.shape)} of {tuple(x.shape)}; a residual needs equal shapes")
        return x + y


def convolution(inputs: int, outputs: int, kernel: int, stride: int = 1) -> nn.Conv2d:
    """A convolution without bias that keeps the size at stride 1, with He's initial weights."""
    layer = Convolution(inputs, outputs, kernel, stride)
    nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")
    return layer


class ConvNorm(nn.Module):
    """BN(conv(x))"""

    def __init__(self, inputs: int, outputs: int, kernel: int = 3, stride: int = 1):
        super().__init__()
        self.conv = convolution(inputs, outputs, kernel, stride)
        self.norm = nn.BatchNorm2d(outputs)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(self.conv(x))


class NormConv(nn.Module):
    """conv(ReLU(BN(x)))"""

    def __init__(self, inputs: int, outputs: int, kernel: int = 3, stride: int = 1):
        super().__init__()
        self.norm = nn.BatchNorm2d(inputs)
        self.conv = convolution(inputs, outputs, kernel, stride)

    def forward(self, x: Tensor) -> Tensor:
        return self.conv(F.relu(self.norm(x)))


class ZeroPad(nn.Module):
    """Every stride-th pixel, and zeros for the new channels: a shortcut without weights ("option A")."""

    def __init__(self, inputs: int, outputs: int, stride: int = 1):
        super().__init__()
        if outputs < inputs:
            raise ValueError(f"zeros cannot make {outputs} channels of {inputs}; use a projection")
        self.more, self.stride = outputs - inputs, stride

    def forward(self, x: Tensor) -> Tensor:
        return F.pad(x[..., :: self.stride, :: self.stride], (0, 0, 0, 0, 0, self.more))


Shortcut = Callable[[int, int, int], nn.Module]
"""(inputs, outputs, stride) -> S"""


def projection(inputs: int, outputs: int, stride: int) -> nn.Module:
    """The identity, or BN(W x) where the shape changes ("option B")."""
    return nn.Identity() if inputs == outputs and stride == 1 else ConvNorm(inputs, outputs, 1, stride)


def linear_projection(inputs: int, outputs: int, stride: int) -> nn.Module:
    """The identity, or W x where the shape changes: without a norm, for blocks whose stream is not normalised."""
    return nn.Identity() if inputs == outputs and stride == 1 else convolution(inputs, outputs, 1, stride)


def zero_pad(inputs: int, outputs: int, stride: int) -> nn.Module:
    """The identity, or `ZeroPad` where the shape changes."""
    return nn.Identity() if inputs == outputs and stride == 1 else ZeroPad(inputs, outputs, stride)


class BasicBlock(nn.Module):
    """ReLU(BN conv ReLU BN conv(x) + S(x))"""

    def __init__(self, inputs: int, outputs: int, stride: int = 1, shortcut: Shortcut = projection):
        super().__init__()
        self.conv_1 = ConvNorm(inputs, outputs, 3, stride)
        self.conv_2 = ConvNorm(outputs, outputs)
        self.shortcut = shortcut(inputs, outputs, stride)

    def branch(self, x: Tensor) -> Tensor:
        """F(x)"""
        return self.conv_2(F.relu(self.conv_1(x)))

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.branch(x) + self.shortcut(x))


class BottleneckBlock(nn.Module):
    """1×1 down to a quarter of the channels, 3×3 there, 1×1 up: ReLU(F(x) + S(x)).

    `strides` are those of the 1×1 and of the 3×3 convolution. The paper has (2, 1) at a stage's start; (1, 2), which
    loses no pixels, is what the public weights have.
    """

    def __init__(self, inputs: int, outputs: int, strides: tuple[int, int] = (1, 1), shortcut: Shortcut = projection):
        super().__init__()
        if outputs % 4:
            raise ValueError(f"a bottleneck of {outputs} channels: they must be a multiple of 4")
        self.conv_1 = ConvNorm(inputs, outputs // 4, 1, strides[0])
        self.conv_2 = ConvNorm(outputs // 4, outputs // 4, 3, strides[1])
        self.conv_3 = ConvNorm(outputs // 4, outputs, 1)
        self.shortcut = shortcut(inputs, outputs, strides[0] * strides[1])

    def branch(self, x: Tensor) -> Tensor:
        """F(x)"""
        x = F.relu(self.conv_1(x))
        return self.conv_3(F.relu(self.conv_2(x)))

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.branch(x) + self.shortcut(x))


class PlainBlock(nn.Module):
    """ReLU(BN conv ReLU BN conv(x)): the two layers of a basic block without the shortcut."""

    def __init__(self, inputs: int, outputs: int, stride: int = 1):
        super().__init__()
        self.conv_1 = ConvNorm(inputs, outputs, 3, stride)
        self.conv_2 = ConvNorm(outputs, outputs)

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.conv_2(F.relu(self.conv_1(x))))


class NormAfterSum(nn.Module):
    """ReLU(BN(conv ReLU BN conv(x) + S(x)))"""

    def __init__(self, inputs: int, outputs: int, stride: int = 1, shortcut: Shortcut = projection):
        super().__init__()
        self.conv_1 = ConvNorm(inputs, outputs, 3, stride)
        self.conv_2 = convolution(outputs, outputs, 3)
        self.norm = nn.BatchNorm2d(outputs)
        self.shortcut = shortcut(inputs, outputs, stride)

    def forward(self, x: Tensor) -> Tensor:
        y = self.conv_2(F.relu(self.conv_1(x)))
        return F.relu(self.norm(y + self.shortcut(x)))


class ReluBeforeSum(BasicBlock):
    """ReLU(BN conv ReLU BN conv(x)) + S(x)"""

    def branch(self, x: Tensor) -> Tensor:
        """F(x) ≥ 0"""
        return F.relu(super().branch(x))

    def forward(self, x: Tensor) -> Tensor:
        return self.branch(x) + self.shortcut(x)


class ReluOnlyPreactivation(BasicBlock):
    """BN conv ReLU BN conv(ReLU(x)) + S(x)"""

    def branch(self, x: Tensor) -> Tensor:
        """F(x)"""
        return super().branch(F.relu(x))

    def forward(self, x: Tensor) -> Tensor:
        return self.branch(x) + self.shortcut(x)


class Preactivation(nn.Module):
    """conv ReLU BN conv ReLU BN(x) + S(x): nothing stands on the path from x to y where S is the identity."""

    def __init__(self, inputs: int, outputs: int, stride: int = 1, shortcut: Shortcut = linear_projection):
        super().__init__()
        self.conv_1 = NormConv(inputs, outputs, 3, stride)
        self.conv_2 = NormConv(outputs, outputs)
        self.shortcut = shortcut(inputs, outputs, stride)

    def branch(self, x: Tensor) -> Tensor:
        """F(x)"""
        return self.conv_2(self.conv_1(x))

    def forward(self, x: Tensor) -> Tensor:
        return self.shortcut(x) + self.branch(x)


class PreactivationBottleneck(Preactivation):
    """A bottleneck with each convolution behind its norm and ReLU, added to S(x)."""

    def __init__(self, inputs: int, outputs: int, stride: int = 1, shortcut: Shortcut = linear_projection):
        nn.Module.__init__(self)
        if outputs % 4:
            raise ValueError(f"a bottleneck of {outputs} channels: they must be a multiple of 4")
        self.conv_1 = NormConv(inputs, outputs // 4, 1)
        self.conv_2 = NormConv(outputs // 4, outputs // 4, 3, stride)
        self.conv_3 = NormConv(outputs // 4, outputs, 1)
        self.shortcut = shortcut(inputs, outputs, stride)

    def branch(self, x: Tensor) -> Tensor:
        """F(x)"""
        return self.conv_3(self.conv_2(self.conv_1(x)))


Block = Callable[[int, int, int], nn.Module]
"""(inputs, outputs, stride) -> a block"""


def stages(block: Block, widths: Sequence[int], depths: Sequence[int], strides: Sequence[int]) -> nn.ModuleList:
    """Stage i: depths[i] blocks from widths[i] to widths[i + 1] channels; its first block has strides[i], the others 1.

    `widths` begins with the channels of the stem, so it is longer by one.
    """
    if not len(widths) - 1 == len(depths) == len(strides) or min(depths, default=0) < 1:
        raise ValueError(
            f"{len(widths) - 1} widths, depths {tuple(depths)}, {len(strides)} strides: give one each, from 1"
        )
    sizes = zip(pairwise(widths), depths, strides, strict=True)
    return nn.ModuleList(
        nn.Sequential(block(a, b, stride), *(block(b, b, 1) for _ in range(depth - 1)))
        for (a, b), depth, stride in sizes
    )
