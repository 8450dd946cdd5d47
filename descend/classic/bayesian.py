"""Bayesian optimization: a Gaussian process over the trials so far, and the point of greatest expected improvement.

    f(h) ~ GP(0, k(h, h'))                         k is given; ε is the variance of the noise, or a small jitter
    μ(h)  = kᵀ (K + ε I)⁻¹ f                        k_i = k(h_i, h),   K_ij = k(h_i, h_j)
    s²(h) = k(h, h) − kᵀ (K + ε I)⁻¹ k
    EI(h) = E[max(0, f_min − f(h))] = (f_min − μ) Φ(z) + s φ(z),        z = (f_min − μ) / s

The loop: condition the process on the trials, evaluate f where EI is greatest, repeat. The book (MF 13.3.3, equation
13.10) gives the process and names expected improvement; kernel, noise, the formula of EI and how to maximise it are
left open. Here: minimisation, a squared exponential or Matérn 5/2 kernel, and EI maximised over given candidates.

`descend tune --sampler gp` uses Optuna's GPSampler, which is this process with a Matérn 5/2 kernel and one length a
parameter, on standardized scores, all fitted by the marginal likelihood (times a prior), and log EI maximised by
L-BFGS. The tests prove that its next point is the one of greatest `expected_improvement` under `posterior`.

Systems: bayesian-optimization
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

Kernel = Callable[[Tensor, Tensor], Tensor]
"""k(a, b): points (n, d) and (m, d) to covariances (n, m). A function of a − b: k(h, h) is the same everywhere."""


def squared_distances(a: Tensor, b: Tensor, lengths: Tensor | float = 1.0) -> Tensor:
    """Σ_j ((a_j − b_j) / l_j)² of all pairs (n, m)."""
    return ((a[:, None, :] - b[None, :, :]) / lengths).square().sum(-1)


def squared_exponential(a: Tensor, b: Tensor, lengths: Tensor | float = 1.0, scale: float = 1.0) -> Tensor:
    """k = σ² exp(−d²/2)."""
    return scale * (-0.5 * squared_distances(a, b, lengths)).exp()


def matern52(a: Tensor, b: Tensor, lengths: Tensor | float = 1.0, scale: float = 1.0) -> Tensor:
    """k = σ² (1 + √5 d + 5d²/3) exp(−√5 d): samples are twice differentiable, not smooth without end."""
    d = (5 * squared_distances(a, b, lengths)).sqrt()
    return scale * (1 + d + d.square() / 3) * (-d).exp()


def posterior(
    h: Tensor, f: Tensor, query: Tensor, kernel: Kernel = squared_exponential, noise: float = 1e-6
) -> tuple[Tensor, Tensor]:
    """Mean μ and standard deviation s at the query points (m, d), given f (n) at h (n, d)."""
    k = kernel(h, query)  # (n, m)
    root = torch.linalg.cholesky(kernel(h, h) + noise * torch.eye(len(h), dtype=h.dtype))
    solved = torch.cholesky_solve(torch.cat([f[:, None], k], dim=1), root)
    mu = k.T @ solved[:, 0]
    variance = kernel(query[:1], query[:1])[0] - (k * solved[:, 1:]).sum(0)
    return mu, variance.clamp_min(0).sqrt()  # rounding may carry a zero below zero


def expected_improvement(mu: Tensor, s: Tensor, best: Tensor | float) -> Tensor:
    """(f_min − μ) Φ(z) + s φ(z); where s = 0 nothing is uncertain and the improvement is max(0, f_min − μ)."""
    gain = best - mu
    z = gain / torch.where(s > 0, s, 1.0)
    density = (-0.5 * z.square()).exp() / math.sqrt(2 * math.pi)
    ei = gain * torch.special.ndtr(z) + s * density
    return torch.where(s > 0, ei, gain).clamp_min(0)


def propose(h: Tensor, f: Tensor, candidates: Tensor, kernel: Kernel = squared_exponential) -> Tensor:
    """The candidate of greatest expected improvement; the scores are standardized first."""
    spread = f.std(correction=0)
    y = (f - f.mean()) / torch.where(spread > 0, spread, 1.0)
    mu, s = posterior(h, y, candidates, kernel)
    return candidates[expected_improvement(mu, s, y.min()).argmax()]


def minimize(
    objective: Callable[[Tensor], float],
    candidates: Tensor,
    trials: int,
    start: int = 3,
    seed: int = 0,
    kernel: Kernel = squared_exponential,
) -> tuple[Tensor, Tensor]:
    """The loop: `start` random candidates, then one proposal after another. Returns points (n, d) and scores (n)."""
    if not 1 <= start <= trials:
        raise ValueError(f"start with 1 to {trials} random trials, not {start}")
    chance = torch.Generator().manual_seed(seed)
    h = candidates[torch.randperm(len(candidates), generator=chance)[:start]]
    f = torch.tensor([objective(x) for x in h], dtype=h.dtype)
    for _ in range(trials - start):
        x = propose(h, f, candidates, kernel)
        h, f = torch.cat([h, x[None]]), torch.cat([f, f.new_tensor([objective(x)])])
    return h, f
