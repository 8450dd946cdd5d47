"""Linear attention: exp(q·k) is replaced by φ(q)·φ(k), so that keys and values can be added up once.

    A_ij = φ(q_i)·φ(k_j) / Σ_j φ(q_i)·φ(k_j)         y_i = Σ_j A_ij v_j                      t × t: to read
    y_i = S φ(q_i) / z·φ(q_i)                        S = Σ_j v_j φ(k_j)ᵀ,   z = Σ_j φ(k_j)   O(t d²)
    causal: S_i = S_{i−1} + v_i φ(k_i)ᵀ,   z_i = z_{i−1} + φ(k_i)                            a recurrent network

The books name it and give no φ; φ = elu + 1 > 0 is that of the paper. It is another function than softmax attention,
not an approximation of it. `descend.nn.attention.linear` is the fast form.

Systems: linear-attention
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


def elu_plus_one(x: Tensor) -> Tensor:
    """φ(x) = elu(x) + 1: x + 1 above 0, eˣ below; never negative."""
    return F.elu(x) + 1


def kernel_attention(
    q_features: Tensor, k_features: Tensor, v: Tensor, mask: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """y and A from the whole matrix φ(Q) φ(K)ᵀ: features (.., t, m), v (.., s, v); True in the mask: may look."""
    kernel = q_features @ k_features.transpose(-2, -1)
    kernel = kernel if mask is None else kernel * mask
    a = kernel / kernel.sum(-1, keepdim=True)
    return a @ v, a


def recurrent_attention(q_features: Tensor, k_features: Tensor, v: Tensor) -> Tensor:
    """The causal form, one position after the other, with a state of fixed size: S (.., v, m) and z (.., m)."""
    s, z = v.new_zeros(*v.shape[:-2], v.shape[-1], k_features.shape[-1]), torch.zeros_like(k_features[..., 0, :])
    found = []
    for i in range(v.shape[-2]):
        q, k = q_features[..., i, :], k_features[..., i, :]
        s, z = s + v[..., i, :, None] * k[..., None, :], z + k
        found.append((s @ q[..., None]).squeeze(-1) / (z * q).sum(-1, keepdim=True))
    return torch.stack(found, dim=-2)
