"""GELU in its tanh form, for training: the derivative is kept instead of the input, and tanh is never called.

    gelu(x) = x (1 + tanh u) / 2 = x σ(w)            u = √(2/π) (x + 0.044715 x³),   w = 2 u = x (a + b x²)
    gelu'(x) = σ(w) + gelu(x) (1 − σ(w)) (a + 3 b x²)

The two forms are one, since (1 + tanh u)/2 = σ(2u); on a CPU σ costs a third of tanh. The forward pass has all that the
derivative needs in hand, so it computes it there and the backward pass is a single product, with no more memory than
keeping x. Where a compiler fuses the expression itself, torch's own kernel is used. The exact form is torch.nn.GELU.

Systems: gelu
"""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

A = 2 * math.sqrt(2 / math.pi)
B = A * 0.044715


class GELUTanh(nn.Module):
    """x (1 + tanh(√(2/π)(x + 0.044715 x³))) / 2, the form that GPT-2 was released with."""

    def forward(self, x: Tensor) -> Tensor:
        if torch.compiler.is_compiling() or x.device.type != "cpu":
            return F.gelu(x, approximate="tanh")
        if not (torch.is_grad_enabled() and x.requires_grad):
            return torch.addcmul(torch.full((), A, dtype=x.dtype), x, x, value=B).mul_(x).sigmoid_().mul_(x)
        y: Tensor = KeepDerivative.apply(x)
        return y


class KeepDerivative(torch.autograd.Function):
    """gelu(x) and gelu'(x) in one pass, in place wherever a buffer is done with."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        slope = x.square()
        sigma = (slope * B).add_(A).mul_(x).sigmoid_()  # σ(w)
        y = x * sigma
        slope.mul_(3 * B).add_(A).mul_(y)  # gelu(x) (a + 3 b x²)
        slope.addcmul_(slope, sigma, value=-1).add_(sigma)
        ctx.save_for_backward(slope)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (slope,) = ctx.saved_tensors
        return grad * slope
