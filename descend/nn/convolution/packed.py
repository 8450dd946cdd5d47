"""A convolution that keeps its weights in the processor's own order between calls without gradients.

A convolution of oneDNN rearranges its weights at every call. Where the same weights are used again and again, as by a
sampler that calls one network fifty times, they are rearranged once: the same numbers, bit for bit. They are rearranged
anew when they have changed, when maps of another size come, and after any pass with gradients: a fused optimizer
changes weights without counting it as a change (their `_version` stays).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn


class PackedConv2d(nn.Conv2d):
    """torch's convolution; in evaluation, without gradients, on a CPU, in float32: with weights that stay packed."""

    _packed: tuple[Any, Any] = (None, None)

    def forward(self, input: Tensor) -> Tensor:
        if self.training or torch.is_grad_enabled() or not is_packable(input, self.weight):
            self._packed = None, None  # what follows a pass with gradients may change the weights, and need not tell
            return super().forward(input)
        key = (self.weight.data_ptr(), self.weight._version, input.shape)
        operators: Any = torch.ops.mkldnn
        sizes = [list(found) for found in (self.padding, self.stride, self.dilation)]
        if self._packed[0] != key:
            weight = self.weight.contiguous(memory_format=torch.channels_last)
            self._packed = key, operators._reorder_convolution_weight(weight, *sizes, self.groups, list(input.shape))
        found: Tensor = operators._convolution_pointwise(
            input, self._packed[1], self.bias, *sizes, self.groups, "none", [], ""
        )
        return found


def is_packable(x: Tensor, weight: Tensor) -> bool:
    """Whether oneDNN's own convolution can be asked for: both in memory, float32, and nothing is being traced."""
    plain = x.device.type == weight.device.type == "cpu" and x.dtype == weight.dtype == torch.float32
    return plain and torch.backends.mkldnn.is_available() and not torch.compiler.is_compiling() and not x.is_inference()
