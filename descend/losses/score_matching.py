"""Score matching: fit s_θ to ∇ log p, without a normaliser. One value for each example.

    explicit      ½ ‖s_θ(x) − ∇ log p(x)‖²                        for known densities
    implicit      tr ∂s_θ/∂x + ½ ‖s_θ(x)‖²                        the same up to a constant; no ∇ log p (Hyvärinen 2005)
    sliced        vᵀ (∂s_θ/∂x) v + ½ ‖s_θ(x)‖²                    v random with E v vᵀ = I: the trace in expectation
    denoising     ½ ‖s_θ(x + σε) + ε/σ‖² = (1/2σ²) ‖ε − s̃‖²       s̃ = −σ s_θ: a network that predicts the noise
    multi-scale   Σ_t λ_t (1/2σ_t²) ‖ε − s̃(x + σ_t ε, t)‖²        λ_t = σ_t² gives every level the weight 1

Errata: DLN prints the factor of the denoising loss as 1/σ in four places (also γ_t = 1/σ); it is 1/σ², and then
λ_t = σ_t² gives the weight exactly 1, the simple loss of DDPM. It says that denoising equals the explicit loss of the
smoothed density; they differ by a constant, so minimum and gradient agree and the values do not (Vincent 2011).
S940's form has no ½. Implicit matching of an energy is named only in DLN. With s = −∇E the loss has second derivatives
of E: the input must carry a graph (`ops/energy/score.py` builds one where it does).

Systems: score-function, denoising-score-matching, multi-scale-score-model, ebm-score-matching
"""

from __future__ import annotations

import torch
from torch import Tensor

from descend.ops.energy.score import Score


def explicit_score_matching(score: Tensor, true: Tensor) -> Tensor:
    """½ ‖s_θ − ∇ log p‖² of vectors (n, d): (n)

    Systems: score-function
    """
    return (score - true).square().flatten(1).sum(1) / 2


def implicit_score_matching(score: Score, x: Tensor) -> Tensor:
    """tr ∂s/∂x + ½ ‖s‖², the trace exactly, by one backward pass for each of the d coordinates.

    Systems: ebm-score-matching
    """
    with torch.enable_grad():
        x = x.detach().requires_grad_()
        s = score(x)
        columns = [torch.autograd.grad(s[:, i].sum(), x, create_graph=True)[0][:, i] for i in range(x.shape[1])]
        return torch.stack(columns).sum(0) + s.square().sum(1) / 2


def sliced_score_matching(score: Score, x: Tensor, v: Tensor) -> Tensor:
    """vᵀ (∂s/∂x) v + ½ ‖s‖², for directions v (n, d): one backward pass however many coordinates there are.

    Systems: ebm-score-matching
    """
    with torch.enable_grad():
        x = x.detach().requires_grad_()
        s = score(x)
        along = torch.autograd.grad((s * v).sum(), x, create_graph=True)[0]
        return (along * v).sum(1) + s.square().sum(1) / 2


def denoising_score_matching(score: Tensor, noise: Tensor, sigma: float | Tensor) -> Tensor:
    """½ ‖s_θ(x + σε) + ε/σ‖² of scores and noises (n, ..), with σ one number or (n): (n)

    Systems: denoising-score-matching
    """
    sigma = torch.as_tensor(sigma, dtype=score.dtype, device=score.device).reshape(-1, *[1] * (score.dim() - 1))
    return (score + noise / sigma).square().flatten(1).sum(1) / 2


def denoising_by_noise(predicted: Tensor, noise: Tensor, weight: float | Tensor) -> Tensor:
    """(w/2) ‖ε − s̃‖², w = λ/σ²: the same for a network that predicts the noise; w = 1 for λ = σ².

    Systems: denoising-score-matching, multi-scale-score-model
    """
    return weight * (noise - predicted).square().flatten(1).sum(1) / 2


def level_weights(sigmas: Tensor, lambdas: Tensor) -> Tensor:
    """λ_t/σ_t² of each level.

    Systems: multi-scale-score-model
    """
    return lambdas / sigmas.square()
