"""The gradient of a class's logit with respect to the pixels, and what is made of it.

    saliency                   s_ij = max_c |∂z_y / ∂x_cij|
    backward through a ReLU    gradient:  g · [a > 0]        deconvnet:  g · [g > 0]        guided:  g · [a > 0] [g > 0]

The rule of the ReLU is changed for the one backward pass, in any network: modules, functions and methods alike.

Systems: filter-visualization
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from descend.interpret.layers import answer, evaluation_mode

RELUS = {nn.functional.relu, nn.functional.relu_, torch.relu, torch.relu_, Tensor.relu, Tensor.relu_}


class DeconvnetReLU(torch.autograd.Function):
    """Forward max(0, a); backward max(0, g): the deconvnet rectifies what comes back, wherever the unit stood."""

    @staticmethod
    def forward(ctx: Any, a: Tensor) -> Tensor:
        return a.clamp_min(0)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Tensor:
        return grads[0].clamp_min(0)


class GuidedReLU(torch.autograd.Function):
    """Forward max(0, a); backward max(0, g) where a > 0."""

    @staticmethod
    def forward(ctx: Any, a: Tensor) -> Tensor:
        y = a.clamp_min(0)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Tensor:
        (y,) = ctx.saved_tensors
        return grads[0].clamp_min(0) * (y > 0)


class Rectifier(TorchFunctionMode):
    """Inside, every ReLU is `relu`, however the network calls it."""

    def __init__(self, relu: type[torch.autograd.Function]):
        super().__init__()
        self.relu = relu

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func in RELUS:
            return self.relu.apply(args[0] if args else (kwargs or {})["input"])
        return func(*args, **(kwargs or {}))


def input_gradient(model: nn.Module, x: Tensor, y: Tensor | None = None) -> Tensor:
    """∂z_y / ∂x, of the shape of x (b, c, h, w); y (b) are classes, without them the most likely."""
    with evaluation_mode(model), torch.enable_grad():
        x = x.detach().clone().requires_grad_()
        z, y = answer(model, x, y)
        return torch.autograd.grad(z.gather(1, y[:, None]).sum(), x)[0]


def saliency(model: nn.Module, x: Tensor, y: Tensor | None = None) -> Tensor:
    """s (b, h, w)"""
    return input_gradient(model, x, y).abs().amax(dim=1)


def guided_gradient(model: nn.Module, x: Tensor, y: Tensor | None = None) -> Tensor:
    """Guided backpropagation: only paths that are active and excite, of the shape of x."""
    with Rectifier(GuidedReLU):
        return input_gradient(model, x, y)
