"""Backward rules of the layers: the adjoints of a layer's inputs from the adjoint G of its output, written out by hand.

    linear          Y = X W + b                 dW = Xᵀ G,  db = Σ_rows G,  dX = G Wᵀ
    ReLU            y = max(0, x)               dx = G · 1[x > 0]                        (0 at x = 0)
    residual        R = X + Z                   dX = G,  dZ = G
    embedding       X_i = E[t_i]                dE[j] = Σ_{i: t_i = j} G_i               (repeated tokens accumulate)
    softmax         p = softmax(z)              dz = p · (p̄ − p̄ᵀp)
    softmax and CE  ℓ = −mean_i log p_{i,y_i}   dz = (p − onehot(y)) / m
    layer norm      x̂ = (x − μ)/√(σ² + ε)       dγ = Σ G x̂,  dβ = Σ G,
                    g = γ G                     dx = (g − mean g − x̂ · mean(g x̂)) / √(σ² + ε)

Leading axes are positions; parameters collect the sum over all of them. Nothing here calls autograd.

Errata. MF 10.4.2 says that the adjoint of p under cross-entropy is p − y; it is −y/p (`probability_adjoint`), and p − y
is what the softmax rule makes of it. The layer-norm rule is exact for ε inside the root, as VOM 12 has it; with ε
outside, as in VOM 9, the rule is another one (`layer_norm_outside_backward`). VOM 12.4.2 has the direction reversed:
p − y points from the target to the prediction.

Systems: layer-backward-rules
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F


def linear_backward(x: Tensor, w: Tensor, g: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """dX, dW, db of Y = X W + b: x (.., i), w (i, o), g (.., o)."""
    rows, upstream = x.reshape(-1, x.shape[-1]), g.reshape(-1, g.shape[-1])
    return g @ w.T, rows.T @ upstream, upstream.sum(dim=0)


def relu_backward(x: Tensor, g: Tensor) -> Tensor:
    """G where x > 0, else 0."""
    return g * (x > 0)


def residual_backward(g: Tensor) -> tuple[Tensor, Tensor]:
    """Both branches of R = X + Z get the whole of G."""
    return g, g


def embedding_backward(tokens: Tensor, g: Tensor, vocab: int) -> Tensor:
    """dE (v, d) of a lookup: tokens (..), g (.., d). It is onehot(t)ᵀ G; rows of absent tokens are 0."""
    into = torch.zeros(vocab, g.shape[-1], dtype=g.dtype, device=g.device)
    return into.index_add(0, tokens.flatten(), g.reshape(-1, g.shape[-1]))


def softmax_backward(p: Tensor, p_bar: Tensor) -> Tensor:
    """z̄ = p (p̄ − p̄ᵀp) for each row, in O(K): the Jacobian diag(p) − p pᵀ is never built."""
    return p * (p_bar - (p_bar * p).sum(dim=-1, keepdim=True))


def probability_adjoint(p: Tensor, y: Tensor) -> Tensor:
    """p̄ = −y/p, the derivative of −Σ y log p in the probabilities."""
    return -y / p


def cross_entropy_backward(logits: Tensor, y: Tensor) -> Tensor:
    """(softmax(z) − onehot(y)) / m for the mean over m positions: logits (.., v), classes y (..)."""
    return (logits.softmax(dim=-1) - F.one_hot(y, logits.shape[-1])) / y.numel()


def layer_norm_backward(x: Tensor, gamma: Tensor, g: Tensor, eps: float) -> tuple[Tensor, Tensor, Tensor]:
    """dx, dγ, dβ of γ (x − μ)/√(σ² + ε) + β."""
    centred = x - x.mean(dim=-1, keepdim=True)
    root = (centred.square().mean(dim=-1, keepdim=True) + eps).sqrt()
    hat, inner = centred / root, gamma * g
    dx = (inner - inner.mean(-1, keepdim=True) - hat * (inner * hat).mean(-1, keepdim=True)) / root
    return dx, *gain_and_shift(hat, g)


def layer_norm_outside_backward(x: Tensor, gamma: Tensor, g: Tensor, eps: float) -> tuple[Tensor, Tensor, Tensor]:
    """dx, dγ, dβ of γ (x − μ)/(σ + ε) + β: dx = (g − mean g − (x − μ) mean(g (x − μ)) / (σ (σ + ε))) / (σ + ε)."""
    centred = x - x.mean(dim=-1, keepdim=True)
    sigma = centred.square().mean(dim=-1, keepdim=True).sqrt()
    scale, inner = sigma + eps, gamma * g
    along = centred * (inner * centred).mean(-1, keepdim=True) / (sigma * scale)
    dx = (inner - inner.mean(-1, keepdim=True) - along) / scale
    return dx, *gain_and_shift(centred / scale, g)


def gain_and_shift(hat: Tensor, g: Tensor) -> tuple[Tensor, Tensor]:
    """dγ = Σ G x̂ and dβ = Σ G over all positions."""
    width = g.shape[-1]
    return (g * hat).reshape(-1, width).sum(dim=0), g.reshape(-1, width).sum(dim=0)
