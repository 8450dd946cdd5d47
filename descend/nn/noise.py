"""Gaussian noise on inputs, activities and weights: there in training, gone at test.

    inputs, activities     h + ε,  ε_i ~ N(0, σ_i²)                     `GaussianNoise`, before or between layers
    weights                W + E,  E_ij ~ N(0, σ²), anew at every pass  `NoisyWeights`, around a model; not on biases

For one linear unit the noise of the inputs is an L2 penalty: its output gains variance Σ w_i² σ_i², so

    E[(wᵀ(x + ε) − t)²] = (wᵀx − t)² + Σ_i w_i² σ_i²

Summed over N examples with one σ this is ridge regression, ‖Xw − t‖² + Nσ² ‖w‖²: w = (XᵀX + Nσ² I)⁻¹ Xᵀt.

Systems: noise-regularization
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.func import functional_call


class GaussianNoise(nn.Module):
    """h + ε in training, h at test; σ is a number, or one for each unit."""

    sigma: Tensor

    def __init__(self, sigma: float | Tensor):
        super().__init__()
        sigma = torch.as_tensor(sigma, dtype=torch.get_default_dtype()) if isinstance(sigma, float | int) else sigma
        if bool((sigma < 0).any()):
            raise ValueError("sigma is a standard deviation: 0 or more")
        self.register_buffer("sigma", sigma, persistent=False)

    def forward(self, h: Tensor) -> Tensor:
        return h + self.sigma.to(h.dtype) * torch.randn_like(h) if self.training else h


class NoisyWeights(nn.Module):
    """A model whose matrices carry fresh noise at every pass in training; the gradient reaches the clean weights."""

    def __init__(self, model: nn.Module, sigma: float):
        super().__init__()
        if sigma < 0:
            raise ValueError(f"sigma {sigma} is a standard deviation: 0 or more")
        self.model, self.sigma = model, sigma

    def forward(self, x: Tensor) -> Tensor:
        if not self.training:
            return self.model(x)
        noisy = {
            name: w + self.sigma * torch.randn_like(w) if w.dim() > 1 else w
            for name, w in self.model.named_parameters()
        }
        y = functional_call(self.model, noisy, (x,))
        return y


def noise_penalty(w: Tensor, sigma: Tensor) -> Tensor:
    """Σ_i w_i² σ_i²: what input noise adds to the expected squared error of a linear unit (.., d)."""
    return (w.square() * sigma.square()).sum(-1)


def expected_square(w: Tensor, x: Tensor, t: Tensor, sigma: Tensor) -> Tensor:
    """E[(wᵀ(x + ε) − t)²] for x (.., d) and t (..)."""
    return (x @ w - t).square() + noise_penalty(w, sigma)
