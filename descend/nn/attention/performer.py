"""Performer: linear attention whose features estimate the softmax kernel (FAVOR+).

    φ(x)_i = m^(−1/2) exp(w_i·x − ‖x‖²/2)            E[φ(q)·φ(k)] = exp(q·k)
    y = diag(Φ(Q') Φ(K')ᵀ 1)⁻¹ Φ(Q') (Φ(K')ᵀ V)      Q' = Q d^(−1/4),  K' = K d^(−1/4),  so that q'·k' = q·k/√d

O(t m d) instead of O(t² d); the error against softmax attention falls as m^(−1/2). S940 6.2 prints it without the
factor d^(−1/4) and without the row normaliser (errata). The rows w_i are orthogonal in blocks of d, drawn from a seed,
and kept with the weights; `redraw` takes new ones. A factor common to all features of a query, or to all keys, cancels
in the normaliser: the largest exponent is taken out, so that nothing overflows.

Systems: performer
"""

from __future__ import annotations

import torch
from torch import Tensor

from descend.nn.attention.linear import kernel_mix
from descend.nn.attention.self_attention import SelfAttention
from descend.ops.attention.random_features import orthogonal_rows, scale_by_root


def stable_features(x: Tensor, w: Tensor, over: tuple[int, ...]) -> Tensor:
    """exp(w_i·x − ‖x‖²/2) up to a common factor, the largest along the axes `over`: x (.., d), w (m, d) -> (.., m)"""
    z = x @ w.T - x.square().sum(-1, keepdim=True) / 2
    return (z - z.amax(over, keepdim=True).detach()).exp()


def performer_mix(
    q: Tensor, k: Tensor, v: Tensor, w: Tensor, keep: Tensor | None = None, causal: bool = False
) -> Tensor:
    """Softmax attention by m random features, rows w (m, d): (b, t, h, k) three times -> (b, t, h, k)."""
    q_features, k_features = stable_features(scale_by_root(q), w, (-1,)), stable_features(scale_by_root(k), w, (1, -1))
    return kernel_mix(q_features, k_features, v, keep, causal)


class PerformerAttention(SelfAttention):
    """An estimate of full attention in time and memory that grow with t; the same weights fit both."""

    w: Tensor

    def __init__(self, width: int, heads: int, features: int, seed: int = 0):
        super().__init__(width, heads)
        self.register_buffer("w", orthogonal_rows(features, self.head_size, torch.Generator().manual_seed(seed)))

    def redraw(self, seed: int) -> None:
        """New random rows."""
        rows = orthogonal_rows(len(self.w), self.head_size, torch.Generator().manual_seed(seed))
        self.w.copy_(rows)

    def mix(self, q: Tensor, k: Tensor, v: Tensor, keep: Tensor | None, causal: bool) -> Tensor:
        return performer_mix(q, k, v, self.w, keep, causal)
