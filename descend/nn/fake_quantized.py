"""Quantization-aware training: layers that compute with rounded weights and learn the weights behind them.

    forward     y = x̂ Ŵᵀ + b          Ŵ: the codes that the weights would have now, times their steps
    backward    ∂L/∂W = ∂L/∂Ŵ         where no weight was cut off (the steps come from the largest, so nowhere)
                ∂L/∂x = ∂L/∂x̂         inside the range of x̂, 0 outside                 straight-through

Ŵ is what `nn/quantized.py` keeps of W, with the same groups: a model that was trained so and is then quantized computes
with the same numbers. Activations are rounded by the books' 256 codes between the least and the greatest number seen:
running values, as batch norm has them, which move by 1/100 towards those of a batch in training and stay in evaluation.
The parameters keep their names, so the checkpoint is that of the plain model. MF names the method and no formula.

Systems: quantization-aware-training
"""

from __future__ import annotations

from typing import Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from descend.errors import Mistake
from descend.nn.quantized import find_matrices
from descend.ops.quantization import fake_quantize_matrix, fake_quantize_range

SHARE = 0.01  # of a batch in the running range


class RoundedInput(nn.Module):
    """x̂: 256 codes between the running minimum and maximum."""

    low: Tensor
    high: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("low", torch.tensor(torch.inf), persistent=False)
        self.register_buffer("high", torch.tensor(-torch.inf), persistent=False)

    @torch.no_grad()
    def observe(self, x: Tensor) -> None:
        """Move the range towards that of these numbers; the first ones set it."""
        low, high = x.aminmax()
        if self.low > self.high:
            self.low.copy_(low)
            self.high.copy_(high)
        else:
            self.low.lerp_(low, SHARE)
            self.high.lerp_(high, SHARE)

    def forward(self, x: Tensor) -> Tensor:
        if self.training or self.low > self.high:
            self.observe(x)
        return fake_quantize_range(x, self.low, self.high)


class FakeQuantizedLinear(nn.Linear):
    """A linear layer that computes with rounded weights, and rounded inputs where it is given `inputs`."""

    bits: int
    group: int
    inputs: nn.Module

    @classmethod
    def of(cls, layer: nn.Linear, bits: int, group: int, inputs: nn.Module) -> Self:
        """With the same parameters, not copies."""
        made = cls(layer.in_features, layer.out_features, bias=False, device="meta")
        made.weight, made.bias = layer.weight, layer.bias
        made.bits, made.group, made.inputs = bits, group, inputs
        return made.train(layer.training)

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(self.inputs(x), fake_quantize_matrix(self.weight, self.bits, self.group), self.bias)


class FakeQuantizedConv2d(nn.Conv2d):
    """A convolution that computes with rounded kernels, and rounded inputs where it is given `inputs`."""

    bits: int
    group: int
    inputs: nn.Module

    @classmethod
    def of(cls, layer: nn.Conv2d, bits: int, group: int, inputs: nn.Module) -> Self:
        """With the same parameters, not copies."""
        made = cls(1, 1, 1, bias=False, device="meta")
        made.__dict__.update({name: value for name, value in vars(layer).items() if not name.startswith("_")})
        made.weight, made.bias = layer.weight, layer.bias
        made.bits, made.group, made.inputs = bits, group, inputs
        return made.train(layer.training)

    def forward(self, x: Tensor) -> Tensor:
        kernels = fake_quantize_matrix(self.weight, self.bits, self.group)
        return F.conv2d(self.inputs(x), kernels, self.bias, self.stride, self.padding, self.dilation, self.groups)


def fake_quantize_model(model: nn.Module, bits: int, group: int = 0, activations: bool = False) -> list[str]:
    """Let the model's linear layers and convolutions compute with rounded numbers, in place; returns their names."""
    found = find_matrices(model)
    if not found:
        raise Mistake(f"a {type(model).__name__} has no linear layer and no convolution whose weights could be rounded")
    for name, layer in found.items():
        inputs = RoundedInput() if activations else nn.Identity()
        kind = FakeQuantizedConv2d if isinstance(layer, nn.Conv2d) else FakeQuantizedLinear
        model.set_submodule(name, kind.of(layer, bits, group, inputs))  # type: ignore[arg-type]
    return list(found)
