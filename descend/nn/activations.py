"""Activations as modules, by name: torch's where torch has them in the books' form, ours where it does not.

torch lacks the binary step and arctan, and its ReLU has slope 0 at 0 (DLN: 1). The one constant that a book prints is
α = 0.01 of leaky ReLU (DLN); the others are torch's. `descend.ops.activations` has the equations. To know:

    nn.Softplus     is x above 20, 2e-9 off; ops.activations.softplus is exact
    nn.GELU         the exact form, by erf; nn/gelu.py has the tanh form for training
    nn.RReLU        l = 1/8 and u = 1/3
    nn.PReLU        one slope for all channels, or one a channel: nn.PReLU(channels); starts at 0.25

Systems: activation-registry, step-and-threshold, relu, prelu
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn

from descend.errors import Mistake, nearest
from descend.nn.gelu import GELUTanh
from descend.ops import activations as equations


class BinaryStep(nn.Module):
    """0 for x < 0, 1 for x ≥ 0; the gradient is 0."""

    def forward(self, x: Tensor) -> Tensor:
        return equations.binary_step(x)


class Arctan(nn.Module):
    """tan⁻¹ x"""

    def forward(self, x: Tensor) -> Tensor:
        return torch.atan(x)


class ReLU(nn.Module):
    """max(0, x) with a chosen slope at 0; nn.ReLU has 0."""

    def __init__(self, at_zero: float = 1.0):
        super().__init__()
        if not 0 <= at_zero <= 1:
            raise ValueError(f"at_zero {at_zero} is not a slope of ReLU at 0; give a number in 0..1")
        self.at_zero = at_zero

    def forward(self, x: Tensor) -> Tensor:
        return equations.relu(x, self.at_zero)


ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {
    "identity": nn.Identity,
    "binary-step": BinaryStep,
    "threshold": partial(nn.Threshold, 0.0, 0.0),
    "sigmoid": nn.Sigmoid,
    "tanh": nn.Tanh,
    "arctan": Arctan,
    "softplus": nn.Softplus,
    "relu": nn.ReLU,
    "relu-one-at-zero": ReLU,
    "leaky-relu": partial(nn.LeakyReLU, 0.01),
    "prelu": nn.PReLU,
    "rrelu": nn.RReLU,
    "elu": nn.ELU,
    "gelu": nn.GELU,
    "gelu-tanh": GELUTanh,
    "silu": nn.SiLU,
    "softmax": partial(nn.Softmax, dim=-1),
    "softmin": partial(nn.Softmin, dim=-1),
    "log-softmax": partial(nn.LogSoftmax, dim=-1),
    "hardtanh": nn.Hardtanh,
    "celu": nn.CELU,
    "selu": nn.SELU,
    "relu6": nn.ReLU6,
    "softsign": nn.Softsign,
    "tanhshrink": nn.Tanhshrink,
    "hardshrink": nn.Hardshrink,
    "softshrink": nn.Softshrink,
    "log-sigmoid": nn.LogSigmoid,
}


def activation(name: str) -> nn.Module:
    """A new module of this name."""
    if name not in ACTIVATIONS:
        raise Mistake(f"there is no activation {name!r}.{nearest(name, ACTIVATIONS)} Known: {', '.join(ACTIVATIONS)}")
    return ACTIVATIONS[name]()


def learned_slopes(net: nn.Module) -> dict[str, Tensor]:
    """The slopes of every PReLU in a net, by its name, from the input to the output."""
    return {name: m.weight.detach().clone() for name, m in net.named_modules() if isinstance(m, nn.PReLU)}
