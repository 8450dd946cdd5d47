"""Activation functions, elementwise, each with its derivative in closed form.

    identity    x                             1
    step        0 (x < 0), 1 (x ≥ 0)          0, so that nothing below it learns
    threshold   x (x > t), v (x ≤ t)          1, 0
    sigmoid     σ(x) = 1 / (1 + e⁻ˣ)          σ(x)(1 − σ(x)) = σ(x) σ(−x) ≤ 1/4
    tanh        (eˣ − e⁻ˣ) / (eˣ + e⁻ˣ)       1 − tanh² x ≤ 1
    arctan      tan⁻¹ x                       1 / (1 + x²)
    softplus    ln(1 + eˣ)                    σ(x)
    ReLU        max(0, x)                     0 (x < 0), 1 (x > 0), any value of 0..1 at 0
    leaky ReLU  x (x > 0), α x (x ≤ 0)        1, α; PReLU learns α, RReLU draws it from U(l, u), in tests (l+u)/2
    ELU         x (x > 0), α(eˣ − 1) (x ≤ 0)  1, α eˣ = f(x) + α
    GELU        x Φ(x)                        Φ(x) + x φ(x),   Φ and φ of the standard normal
    SiLU        x σ(x)                        σ(x)(1 + x σ(−x))

At a kink the lower branch's slope counts, as in torch: 0 for ReLU, α for the leaky ones. DLN writes x ≥ 0 for the upper
branch, which makes it 1; `relu` takes the slope at 0 as a number. None of these overflows, nor do their gradients.
Errata: ELU is differentiable everywhere for α = 1 only (DLN). The greatest slope of tanh is 1 (MF 15 prints 1/4, that
of σ). Sigmoid is not symmetric about 0 but about the point (0, 1/2) (DLN, on Xavier).

Systems: activation-registry, step-and-threshold, sigmoid, tanh, softplus, relu, leaky-relu, prelu, rrelu, elu, gelu,
    silu-swish
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor


def identity(x: Tensor) -> Tensor:
    """f(x) = x; layers with nothing else between them are one linear map."""
    return x


def binary_step(x: Tensor) -> Tensor:
    """0 for x < 0, 1 for x ≥ 0; written with sign, through which a zero gradient flows."""
    return 1 - torch.sign(-x).relu()


def threshold(x: Tensor, t: float, v: float) -> Tensor:
    """x where x > t, else v; at x = t it is v."""
    return torch.where(x > t, x, v)


def sigmoid(x: Tensor) -> Tensor:
    """σ(x) = 1 / (1 + e⁻ˣ), by torch: the formula as written has a gradient of inf/inf at x = −1000."""
    return torch.sigmoid(x)


def sigmoid_slope(x: Tensor) -> Tensor:
    """σ(x) σ(−x), which is σ(1 − σ) without losing digits where σ is near 1."""
    return torch.sigmoid(x) * torch.sigmoid(-x)


def tanh(x: Tensor) -> Tensor:
    """(eˣ − e⁻ˣ) / (eˣ + e⁻ˣ), by torch: the formula as written is inf/inf at x = 1000."""
    return torch.tanh(x)


def tanh_by_exponentials(x: Tensor) -> Tensor:
    """(eˣ − e⁻ˣ) / (eˣ + e⁻ˣ) as written; for |x| < 700 in float64."""
    return (x.exp() - (-x).exp()) / (x.exp() + (-x).exp())


def tanh_by_sigmoid(x: Tensor) -> Tensor:
    """2 σ(2x) − 1 = 2 / (1 + e⁻²ˣ) − 1"""
    return 2 * torch.sigmoid(2 * x) - 1


def tanh_slope(x: Tensor) -> Tensor:
    """1 − tanh² x = 4 σ(2x) σ(−2x)"""
    return 4 * sigmoid_slope(2 * x)


def arctan_slope(x: Tensor) -> Tensor:
    """1 / (1 + x²)"""
    return 1 / (1 + x.square())


def softplus(x: Tensor) -> Tensor:
    """ln(1 + eˣ) = ln(e⁰ + eˣ), exact on both sides. torch.nn.Softplus returns x above 20, which is off by 2e-9."""
    return torch.logaddexp(x, torch.zeros_like(x))


def relu(x: Tensor, at_zero: float = 0.0) -> Tensor:
    """max(0, x). `at_zero` is the slope that backpropagation takes at x = 0: 0 in MF, S940, VOM and torch, 1 in DLN."""
    return torch.relu(x) + at_zero * torch.where(x == 0, x, 0.0)  # the second term is 0; it only has a gradient


def relu_slope(x: Tensor, at_zero: float = 0.0) -> Tensor:
    """0 for x < 0, 1 for x > 0, `at_zero` at 0."""
    return torch.heaviside(x, torch.full_like(x, at_zero))


def leaky_relu(x: Tensor, alpha: float | Tensor = 0.01) -> Tensor:
    """x for x > 0, α x for x ≤ 0. A learned α (PReLU) is a tensor that broadcasts: one number, or (c, 1, 1)."""
    return torch.where(x > 0, x, alpha * x)


def leaky_relu_slope(x: Tensor, alpha: float | Tensor = 0.01) -> Tensor:
    """1 for x > 0, α for x ≤ 0."""
    return torch.where(x > 0, torch.ones_like(x), alpha)


def rrelu(x: Tensor, low: float, high: float, random: torch.Generator | None = None) -> Tensor:
    """Leaky ReLU in training: a fresh slope from U(l, u) for every number."""
    return leaky_relu(x, torch.empty_like(x).uniform_(low, high, generator=random))


def rrelu_test(x: Tensor, low: float, high: float) -> Tensor:
    """Leaky ReLU in tests: the mean slope (l + u)/2."""
    return leaky_relu(x, (low + high) / 2)


def elu(x: Tensor, alpha: float = 1.0) -> Tensor:
    """x for x > 0, α(eˣ − 1) for x ≤ 0; −α far to the left."""
    return torch.where(x > 0, x, alpha * torch.expm1(x.clamp_max(0)))


def elu_slope(x: Tensor, alpha: float = 1.0) -> Tensor:
    """1 for x > 0, α eˣ for x ≤ 0: a jump from α to 1 at 0."""
    return torch.where(x > 0, torch.ones_like(x), alpha * x.clamp_max(0).exp())


def normal_cdf(x: Tensor) -> Tensor:
    """Φ(x) = erfc(−x/√2) / 2, with all its digits also far to the left."""
    return torch.erfc(-x / math.sqrt(2)) / 2


def gelu(x: Tensor) -> Tensor:
    """x Φ(x); torch's own, x/2 (1 + erf(x/√2)), is the same but cancels to 0 from about −8 on in float64."""
    return x * normal_cdf(x)


def gelu_tanh(x: Tensor) -> Tensor:
    """x/2 (1 + tanh(√(2/π)(x + 0.044715 x³))), at most 4.7324e-4 away from `gelu`."""
    return x / 2 * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def gelu_slope(x: Tensor) -> Tensor:
    """Φ(x) + x φ(x)"""
    return normal_cdf(x) + x * torch.exp(-x.square() / 2) / math.sqrt(2 * math.pi)


def silu(x: Tensor) -> Tensor:
    """x σ(x); its minimum is −0.27846 at x = −1.27846."""
    return x * torch.sigmoid(x)


def silu_slope(x: Tensor) -> Tensor:
    """σ(x)(1 + x σ(−x))"""
    return torch.sigmoid(x) * (1 + x * torch.sigmoid(-x))


TABLE: dict[str, tuple[Callable[..., Tensor], Callable[..., Tensor]]] = {
    "identity": (identity, torch.ones_like),
    "binary_step": (binary_step, torch.zeros_like),
    "logistic": (sigmoid, sigmoid_slope),
    "tanh": (tanh, tanh_slope),
    "arctan": (torch.atan, arctan_slope),
    "relu": (relu, relu_slope),
    "prelu": (leaky_relu, leaky_relu_slope),
    "elu": (elu, elu_slope),
    "softplus": (softplus, sigmoid),
}
"""DLN's table: a name, the function and its derivative; prelu and elu take α as well."""
