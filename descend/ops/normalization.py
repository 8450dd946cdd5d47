"""Normalization: subtract a mean, divide by a standard deviation; the methods differ in what they average over.

    ẑ = (z − μ) / √(σ² + ε)           σ² = mean of (z − μ)², divided by the count         y = γ ẑ + β

    of a tensor (n, c, h, w)      averaged over          as many μ as          depends on other examples
    batch                         n, h, w                c                     in training
    layer                         c, h, w                n                     never
    instance                      h, w                   n · c                 never
    group, G groups of channels   c/G, h, w              n · G                 never
    RMS: x / √(mean x² + ε)       the last axis, no μ    one a vector          never

A dense layer (n, d) has its features as channels, and tokens (n, t, d) are normalised one by one, over d. In use, batch
normalization takes moving averages μ̄ ← α μ̄ + (1 − α) μ from training (`descend.nn.norms`); the others never change.

The place of ε: inside the root here, as in torch. VOM 9 divides by σ + ε, and MF 36.7 (T5) by rms + ε: `.._outside`.
S940 prints no ε for layer normalization: eps = 0, and a vector of equal numbers is 0/0 then. Errata, and the form taken
here: DLN prints √(σ² − ε) for batch normalization in use, it is +; DLN says that group normalization with G = 1 is
instance and with G = C is layer normalization, it is the other way round; 32 is the number of groups, not the channels
of one. MF's comparison table (14.5) is missing in print; the one above is from its sections 14.2 to 14.4.

Systems: batch-norm, layer-norm, instance-norm, group-norm, rms-norm, normalization-comparison
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def moments(z: Tensor, dims: Sequence[int]) -> tuple[Tensor, Tensor]:
    """μ and σ² (divided by the count) over the axes, which are kept with length 1."""
    mu = z.mean(tuple(dims), keepdim=True)
    return mu, (z - mu).square().mean(tuple(dims), keepdim=True)


def standard_deviation(var: Tensor, eps: float) -> Tensor:
    """√(σ² + ε)"""
    return (var + eps).sqrt()


def normalize(z: Tensor, mu: Tensor, var: Tensor, eps: float) -> Tensor:
    """(z − μ) / √(σ² + ε)"""
    return (z - mu) / standard_deviation(var, eps)


def scale_and_shift(z_hat: Tensor, gamma: Tensor, beta: Tensor) -> Tensor:
    """γ_c ẑ + β_c for channels on axis 1. With γ = σ and β = μ it undoes a normalization."""
    shape = (1, -1, *[1] * (z_hat.dim() - 2))
    return gamma.view(shape) * z_hat + beta.view(shape)


def batch_axes(z: Tensor) -> tuple[int, ...]:
    """All axes but that of the channels: (n, d), (n, c, l) or (n, c, h, w)."""
    return (0, *range(2, z.dim()))


def batch_norm(z: Tensor, eps: float = 1e-5) -> Tensor:
    """Each channel by its own statistics over the batch (and space), as in training."""
    return normalize(z, *moments(z, batch_axes(z)), eps)


def layer_norm(z: Tensor, eps: float = 1e-5, dims: Sequence[int] = (-1,)) -> Tensor:
    """Each example by its own statistics: over the last axis for vectors and tokens, (1, 2, 3) for images."""
    return normalize(z, *moments(z, dims), eps)


def layer_norm_outside(z: Tensor, eps: float = 1e-5) -> Tensor:
    """(z − μ) / (σ + ε) over the last axis: VOM 9 has ε outside the root."""
    mu, var = moments(z, (-1,))
    return (z - mu) / (var.sqrt() + eps)


def instance_norm(z: Tensor, eps: float = 1e-5) -> Tensor:
    """Each channel of each example by its own statistics over space."""
    return normalize(z, *moments(z, range(2, z.dim())), eps)


def restyle(z: Tensor, style: Tensor, eps: float = 1e-5) -> Tensor:
    """σ_s ẑ + μ_s: instance normalization, then the channel statistics of another image (.., c, h, w)."""
    mu, var = moments(style, (-2, -1))
    return var.sqrt() * instance_norm(z, eps) + mu


def group_norm(z: Tensor, groups: int, eps: float = 1e-5) -> Tensor:
    """Each of G groups of neighbouring channels by its own statistics; G = 1 is layer, G = C is instance norm."""
    n, channels = z.shape[:2]
    if channels % groups:
        raise ValueError(f"{channels} channels do not divide into {groups} equal groups; give a divisor of {channels}")
    return layer_norm(z.reshape(n, groups, -1), eps).view(z.shape)


def rms(x: Tensor) -> Tensor:
    """√(mean x²) over the last axis, which is kept."""
    return x.square().mean(-1, keepdim=True).sqrt()


def rms_norm(x: Tensor, eps: float = 1e-6) -> Tensor:
    """x / √(mean x² + ε): the form of LLaMA, of torch, and of the released T5."""
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps)


def rms_norm_outside(x: Tensor, eps: float = 1e-6) -> Tensor:
    """x / (rms + ε): T5 as MF 36.7 prints it."""
    return x / (rms(x) + eps)


def moving(old: Tensor, new: Tensor, alpha: float) -> Tensor:
    """α old + (1 − α) new; torch calls 1 − α the momentum."""
    return alpha * old + (1 - alpha) * new
