"""Initial weights: the variance that keeps a signal's scale, drawn from a normal or a uniform distribution.

    LeCun       Var(W) = 1 / fan_in                     forward, linear layers
    backward    Var(W) = 1 / fan_out                    the same for gradients
    Xavier      Var(W) = gain² · 2 / (fan_in + fan_out)        both, about: for tanh and sigmoid
    He          Var(W) = 2 / fan_in or 2 / fan_out      ReLU keeps half of the squares
    normal      N(0, Var(W))          uniform      U(−a, a), a = √(3 Var(W)), since Var U(−a, a) = a²/3
    residual    projections into a residual stream of N layers start smaller by 1/√N (`descend.theory.residual`)
    recurrent   W_hh orthogonal (all singular values 1), or rescaled to a spectral radius ρ
    LSTM        b_f = 1, all other biases 0: the forget gate starts at σ(1) = 0.73, with b_f = 0 at 0.5

fan_in counts what a unit sees, C k² in a convolution. Xavier and He are torch.nn.init's; the tests hold both together.
Erratum: DLN calls Xavier the average of 1/fan_in and 1/fan_out; it is their harmonic mean.

Systems: lecun-and-fan-out-init, xavier-init, he-init, residual-depth-init, recurrent-init
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn

from descend.theory.residual import residual_scale

Rule = Callable[[int, int], float]
"""(fan_in, fan_out) -> Var(W)"""


def lecun(fan_in: int, fan_out: int) -> float:
    """1 / fan_in"""
    return 1 / fan_in


def backward(fan_in: int, fan_out: int) -> float:
    """1 / fan_out"""
    return 1 / fan_out


def xavier(fan_in: int, fan_out: int, gain: float = 1.0) -> float:
    """gain² · 2 / (fan_in + fan_out), the harmonic mean of the two above"""
    return gain**2 * 2 / (fan_in + fan_out)


def he(fan_in: int, fan_out: int) -> float:
    """2 / fan_in"""
    return 2 / fan_in


def he_backward(fan_in: int, fan_out: int) -> float:
    """2 / fan_out"""
    return 2 / fan_out


def bound(variance: float) -> float:
    """a = √(3 Var): the end of the uniform distribution of this variance"""
    return math.sqrt(3 * variance)


def fans(weight: Tensor) -> tuple[int, int]:
    """(fan_in, fan_out) of a weight (out, in) or (out, in, k, k)."""
    if weight.dim() < 2:
        raise ValueError(f"a weight of shape {tuple(weight.shape)} has no fans; give a matrix or a kernel")
    area = math.prod(weight.shape[2:])
    return weight.shape[1] * area, weight.shape[0] * area


def normal_(weight: Tensor, rule: Rule, random: torch.Generator | None = None) -> Tensor:
    """Fill with N(0, Var(W))."""
    return nn.init.normal_(weight, std=math.sqrt(rule(*fans(weight))), generator=random)


def uniform_(weight: Tensor, rule: Rule, random: torch.Generator | None = None) -> Tensor:
    """Fill with U(−a, a), a = √(3 Var(W))."""
    a = bound(rule(*fans(weight)))
    return nn.init.uniform_(weight, -a, a, generator=random)


def initialize(net: nn.Module, rule: Rule, draw: Callable[..., Tensor], random: torch.Generator | None = None) -> None:
    """Draw every matrix and kernel by the rule, with `normal_` or `uniform_`, and set every bias to 0.

    Gains of norms and slopes of activations stay as they are built: γ = 1. VOM 12.9's transformer is
    initialize(model, xavier, uniform_).
    """
    for name, parameter in net.named_parameters():
        if parameter.dim() >= 2:
            draw(parameter, rule, random)
        elif "bias" in name.rpartition(".")[2]:
            nn.init.zeros_(parameter)


def shrink_(projections: Iterable[Tensor], layers: int) -> None:
    """Multiply the weights that write into a residual stream by 1/√N, N the number of layers that add to it."""
    with torch.no_grad():
        for weight in projections:
            weight.mul_(residual_scale(layers))


def spectral_radius(w: Tensor) -> float:
    """ρ: the largest absolute eigenvalue of a square matrix"""
    return torch.linalg.eigvals(w.detach()).abs().max().item()


def set_radius_(w: Tensor, rho: float) -> Tensor:
    """Rescale a recurrent matrix to spectral radius ρ."""
    found = spectral_radius(w)
    if found == 0:
        raise ValueError("the spectral radius is 0, which no factor changes; draw the matrix first")
    with torch.no_grad():
        return w.mul_(rho / found)


def orthogonal_(w: Tensor, random: torch.Generator | None = None) -> Tensor:
    """WᵀW = I: every singular value is 1, so a linear recurrence neither grows nor shrinks; torch.nn.init's."""
    return nn.init.orthogonal_(w, generator=random)


def forget_bias_(lstm: nn.LSTM | nn.LSTMCell, value: float = 1.0) -> None:
    """b_f = value, all other biases 0. torch adds two biases, of which one keeps 0; its gates are i, f, g, o."""
    for name, bias in lstm.named_parameters():
        if name.startswith("bias"):
            nn.init.zeros_(bias)
            if name.startswith("bias_ih"):
                nn.init.constant_(bias.chunk(4)[1], value)
