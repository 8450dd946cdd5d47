"""A locally connected layer: a convolution whose weights are not shared, a filter of its own at every place.

    y[o, i, j] = b[o, i, j] + Σ_c Σ_a Σ_b w[i, j, o, c, a, b] x[c, s i + a, s j + b]

H' W' K² C_in C_out weights and H' W' C_out biases, against K² C_in C_out and C_out of a convolution. Where faces are
aligned, an eye is always at the same place: what is to be looked for differs from place to place (DeepFace). With the
same filter everywhere it is the convolution.

Systems: deepface-verification
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import unfold


class LocallyConnected2d(nn.Module):
    """images (b, c_in, h, w) -> (b, c_out, h', w'), h' = (h − K) / s + 1; their size is part of the layer."""

    def __init__(self, c_in: int, c_out: int, size: tuple[int, int], kernel: int, stride: int = 1):
        super().__init__()
        if min(size) < kernel:
            raise ValueError(f"maps of {size[0]}×{size[1]} are smaller than the kernel of {kernel}×{kernel}")
        self.kernel, self.stride, self.inputs = kernel, stride, (c_in, *size)
        self.size = (size[0] - kernel) // stride + 1, (size[1] - kernel) // stride + 1
        places, fan_in = self.size[0] * self.size[1], c_in * kernel * kernel
        self.weight = nn.Parameter(torch.randn(places, c_out, fan_in) * math.sqrt(2 / fan_in))
        self.bias = nn.Parameter(torch.zeros(c_out, *self.size))

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[1:] != self.inputs:
            raise ValueError(f"maps of shape {tuple(x.shape[1:])}, but this layer has weights for {self.inputs}")
        patches = unfold(x, self.kernel, stride=self.stride)  # (b, c_in K², places)
        y = torch.einsum("bfp,pof->bop", patches, self.weight)
        return y.unflatten(2, self.size) + self.bias
