"""The patch view: one function applied to every window of an image, or the same network without a window at all.

    y[:, i, j] = f(x[:, i S : i S + K, j S : j S + K])        the same f everywhere, e.g. the class of the middle pixel

`SlidingWindow` cuts the windows out and calls f on each. For f = convolutions and pools without padding, then
flatten and dense layers, `fully_convolutional` gives the network that computes the same map in one pass: the first
dense layer becomes a convolution with the kernel of the map that it flattened, the others 1×1. Windows share their
work, so it costs much less. S is then the product of f's strides.

Padding inside f breaks the equality: each window would be padded at its own border, the image only at its own.

Systems: patch-view-prediction
"""

from __future__ import annotations

import math
from typing import cast

import torch
from torch import Tensor, nn

from descend.ops.images.convolution import Slide, windows

AT_ONCE = 4096  # windows in memory at a time


class SlidingWindow(nn.Module):
    """f: patches (n, c, K, K) -> (n, classes), as a map: images (b, c, h, w) -> (b, classes, h', w')."""

    def __init__(self, f: nn.Module, window: int, step: int = 1):
        super().__init__()
        self.f, self.window, self.step = f, window, step

    def forward(self, x: Tensor) -> Tensor:
        cut = windows(x, self.window, 2, Slide(self.step))  # (b, c, h', w', K, K)
        h, w = cut.shape[2:4]
        patches = cut.permute(0, 2, 3, 1, 4, 5).flatten(0, 2)
        y = torch.cat([self.f(part) for part in patches.split(AT_ONCE)])
        return y.view(len(x), h, w, -1).permute(0, 3, 1, 2)


def fully_convolutional(f: nn.Sequential, window: int) -> nn.Sequential:
    """The same network without its window; dense layers become convolutions that hold the same weights."""
    layers: list[nn.Module] = []
    side = map_side(f, window)
    for module in f:
        if isinstance(module, nn.Conv2d | nn.MaxPool2d | nn.AvgPool2d) and padding_of(module):
            raise ValueError(f"{type(module).__name__} pads: every window would be padded at its own border")
        if isinstance(module, nn.Flatten):
            continue
        if isinstance(module, nn.Linear):
            layers.append(as_convolution(module, side))
            side = 1
        else:
            layers.append(module)
    return nn.Sequential(*layers)


def as_convolution(dense: nn.Linear, side: int) -> nn.Conv2d:
    """A dense layer on flattened maps of side × side, as a convolution with that kernel."""
    channels = dense.in_features // side**2
    conv = nn.Conv2d(channels, dense.out_features, side, bias=dense.bias is not None)
    conv.weight = nn.Parameter(dense.weight.detach().reshape(conv.weight.shape).clone())
    if dense.bias is not None:
        conv.bias = nn.Parameter(dense.bias.detach().clone())
    return conv


def map_side(f: nn.Sequential, window: int) -> int:
    """The side of the map that is flattened, for one window."""
    first = next(module for module in f if isinstance(module, nn.Conv2d | nn.Linear))
    if isinstance(first, nn.Linear):
        return window
    x = first.weight.new_zeros(1, first.in_channels, window, window)
    with torch.no_grad():
        for module in f:
            if isinstance(module, nn.Flatten):
                break
            x = module(x)
    return x.shape[-1]


def padding_of(module: nn.Conv2d | nn.MaxPool2d | nn.AvgPool2d) -> bool:
    """Whether it adds anything at the border."""
    given = module.padding
    return given not in ("valid", 0) and any(cast(tuple[int, ...], (given,) if isinstance(given, int) else given))


def total_stride(f: nn.Sequential) -> int:
    """The product of the strides: the step of the sliding window that the one-pass network equals."""
    moves = [module.stride for module in f if isinstance(module, nn.Conv2d | nn.MaxPool2d | nn.AvgPool2d)]
    return math.prod(s if isinstance(s, int) else s[0] for s in moves)
