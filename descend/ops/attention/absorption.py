"""Why latent attention needs rotary positions of their own: absorption, and how RoPE would forbid it.

    qᵀ k = (W^Q h)ᵀ (W^UK c) = hᵀ (W^Qᵀ W^UK) c                   one matrix for all positions: keys are never made
    with RoPE   hᵀ (W^Qᵀ R_iᵀ R_j W^UK) c                         another matrix for every distance j − i

With query compression W^Q is W^UQ. `descend.nn.attention.latent` decodes by the first line.

Systems: multi-head-latent-attention
"""

from __future__ import annotations

from torch import Tensor

from descend.ops.attention.rotary import rotation


def absorb(w_q: Tensor, w_uk: Tensor) -> Tensor:
    """W^Qᵀ W^UK (d, d_c) of W^Q (d_h, d) and W^UK (d_h, d_c)."""
    return w_q.mT @ w_uk


def absorb_with_rope(w_q: Tensor, w_uk: Tensor, angles: Tensor) -> Tensor:
    """W^Qᵀ R_iᵀ R_j W^UK (…, d, d_c) for angles (j − i) θ (…, d_h/2)."""
    return w_q.mT @ rotation(angles) @ w_uk


def spread(matrices: Tensor) -> Tensor:
    """How far matrices (n, …) are from the first one at most, in one entry."""
    return (matrices - matrices[0]).abs().max()
