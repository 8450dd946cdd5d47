"""The score s(x) = ∇_x log p(x): a vector of the size of x that points to where the density is higher.

    no normaliser        ∇ log(c p) = ∇ log p;  for p = e^−E / Z:  s = −∇_x E
    Gaussian             s(x) = −(x − μ)/σ²                          large far from the data, 0 at the mode
    mixture              s(x) = Σ_k p(k | x) (μ_k − x)/σ_k²
    smoothed data        q_σ(x̃) = (1/N) Σ_i N(x̃; x_i, σ² I)          the data alone have no score: Σ_i δ(x − x_i)
                         ∇ log q_σ(x̃) = (Σ_i w_i x_i − x̃)/σ²         w = softmax(−‖x̃ − x_i‖²/2σ²): a mean shift
    noise and score      x̃ = x + σ ε:  ∇ log q(x̃ | x) = −(x̃ − x)/σ² = −ε/σ,  so  s = −ε̂/σ  and  ε̂ = −σ s

log N(x̃; x, σ² I) = −‖x̃ − x‖²/2σ² − (D/2) log 2πσ². Erratum: DLN prints the constant without D/2, right for D = 2
alone; the score does not depend on it.

Systems: score-function
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from descend.ops.energy.gibbs import Energy

Score = Callable[[Tensor], Tensor]
"""points (n, d) -> vectors (n, d)"""


def score_of(log_prob: Energy) -> Score:
    """∇ log p by automatic differentiation, normalised or not; with a graph where x has one."""

    def score(x: Tensor) -> Tensor:
        graph = x.requires_grad
        with torch.enable_grad():
            x = x if graph else x.detach().requires_grad_()
            return torch.autograd.grad(log_prob(x).sum(), x, create_graph=graph)[0]

    return score


def score_of_energy(energy: Energy) -> Score:
    """s = −∇E"""
    return score_of(lambda x: -energy(x))


def gaussian_score(x: Tensor, mean: Tensor, variance: float | Tensor) -> Tensor:
    """−(x − μ)/σ²"""
    return (mean - x) / variance


def log_smoothing(x: Tensor, clean: Tensor, sigma: float) -> Tensor:
    """log N(x̃; x, σ² I) of each pair of points (n, d)."""
    d = x.shape[-1]
    return -(x - clean).square().sum(-1) / (2 * sigma**2) - d / 2 * math.log(2 * math.pi * sigma**2)


def log_smoothed(x: Tensor, data: Tensor, sigma: float) -> Tensor:
    """log q_σ(x̃) of points (n, d), from data (N, d): (n)"""
    return log_smoothing(x[:, None], data, sigma).logsumexp(1) - math.log(len(data))


def smoothed_score(x: Tensor, data: Tensor, sigma: float) -> Tensor:
    """∇ log q_σ(x̃): towards the weighted mean of the data near x̃."""
    weights = (-torch.cdist(x, data).square() / (2 * sigma**2)).softmax(1)
    return (weights @ data - x) / sigma**2


def noise_to_score(noise: Tensor, sigma: float | Tensor) -> Tensor:
    """s = −ε̂/σ, for DDPM with σ = √(1 − ᾱ_t).

    Systems: denoising-score-matching
    """
    return -noise / sigma


def score_to_noise(score: Tensor, sigma: float | Tensor) -> Tensor:
    """ε̂ = −σ s

    Systems: denoising-score-matching
    """
    return -sigma * score
