"""Multi-head latent attention: keys and values are made from a short vector, which is all that the cache keeps.

    c^Q = W^DQ h,   [q^C_1 .. q^C_n] = W^UQ c^Q,   [q^R_1 .. q^R_n] = RoPE(W^QR c^Q),   q_i = [q^C_i; q^R_i]
    c^KV = W^DKV h,   [k^C_1 .. k^C_n] = W^UK c^KV,   [v_1 .. v_n] = W^UV c^KV
    k^R = RoPE(W^KR h)                                    one key for all heads
    o_i = Σ_{j ≤ t} softmax_j(q_iᵀ [k^C_{j,i}; k^R_j] / √(d_h + d_R)) v_{j,i},        u = W^O [o_1; ..; o_n]

Cached: c^KV and k^R, d_c + d_R numbers for a token and layer (DeepSeek-V2: 576, as much as 2.25 heads with K and V).
Absorbed decoding never makes the keys: q^Cᵀ W^UK c = (W^UKᵀ q^C)ᵀ c, so the queries move into the latent space, attend
there as multi-query attention does, and W^UV comes last. Rotary positions would stand between W^UQ and W^UK and forbid
this; hence the extra q^R, k^R.

The released models normalise c^Q and c^KV (RMS), turn neighbouring pairs, and V2-Lite has no c^Q. W^DKV acts on h of
width d (DLN writes n_h d_h, an erratum), and k^R has no head index (DLN prints one).

Systems: multi-head-latent-attention
"""

from __future__ import annotations

import math
from collections import OrderedDict
from typing import NamedTuple, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from descend.nn.attention.multi_head import attend
from descend.nn.decoding.cache import Layer
from descend.nn.decoding.cached import Angles, DecodingBlock
from descend.ops.attention.rotary import rotate_pairs


class LatentSizes(NamedTuple):
    """d_c of the queries (None: they are made from h), d_c of keys and values, d_h, d_R, and the size of a value."""

    q_rank: int | None
    kv_rank: int
    plain: int
    turned: int
    value: int


class LatentAttention(nn.Module):
    """Causal self-attention over x (b, t, d); `scale` multiplies 1/√(d_h + d_R)."""

    def __init__(self, width: int, heads: int, sizes: LatentSizes, scale: float = 1.0, eps: float = 1e-6):
        super().__init__()
        s = self.sizes = sizes
        if s.value > s.plain + s.turned:
            raise ValueError(f"values of {s.value} numbers are longer than their keys ({s.plain} + {s.turned})")
        self.heads, self.scale = heads, scale / math.sqrt(s.plain + s.turned)
        self.q = make_queries(width, heads * (s.plain + s.turned), s.q_rank, eps)
        self.kv_down = nn.Linear(width, s.kv_rank + s.turned, bias=False)
        self.kv_norm = nn.RMSNorm(s.kv_rank, eps)
        self.kv_up = nn.Linear(s.kv_rank, heads * (s.plain + s.value), bias=False)
        self.out = nn.Linear(heads * s.value, width, bias=False)

    def forward(self, x: Tensor, angles: tuple[Tensor, Tensor]) -> Tensor:
        """Naive: keys and values are made of the latents, then attention as usual."""
        k, v = self.expand(self.latents(x, angles))
        y = attend(self.queries(x, angles), k, self.widen_values(v), causal=True, scale=self.scale)
        return cast("Tensor", self.out(y[..., : self.sizes.value].flatten(-2)))

    def queries(self, x: Tensor, angles: tuple[Tensor, Tensor]) -> Tensor:
        """[q^C_i; q^R_i] (b, t, h, d_h + d_R)"""
        plain, turned = self.q(x).unflatten(-1, (self.heads, -1)).split([self.sizes.plain, self.sizes.turned], -1)
        return torch.cat([plain, turn(turned, angles)], -1)

    def latents(self, x: Tensor, angles: tuple[Tensor, Tensor]) -> Tensor:
        """[c^KV; k^R] (b, t, d_c + d_R): what the cache keeps."""
        c, shared = self.kv_down(x).split([self.sizes.kv_rank, self.sizes.turned], -1)
        return torch.cat([self.kv_norm(c), turn(shared[..., None, :], angles)[..., 0, :]], -1)

    def expand(self, latents: Tensor) -> tuple[Tensor, Tensor]:
        """Keys (b, s, h, d_h + d_R) and values (b, s, h, d_v) of latents (b, s, d_c + d_R)."""
        c, shared = latents.split([self.sizes.kv_rank, self.sizes.turned], -1)
        plain, v = self.kv_up(c).unflatten(-1, (self.heads, -1)).split([self.sizes.plain, self.sizes.value], -1)
        return torch.cat([plain, shared[..., None, :].expand(*plain.shape[:-1], -1)], -1), v

    def widen_values(self, v: Tensor) -> Tensor:
        """Values with zeros up to the keys' size, as the fused kernels want them."""
        return F.pad(v, (0, self.sizes.plain + self.sizes.turned - self.sizes.value))

    def attend_absorbed(self, q: Tensor, latents: Tensor, mask: Tensor | None) -> Tensor:
        """The output for queries (b, t, h, d_h + d_R) over latents (b, 1, s, d_c + d_R), without keys or values."""
        s = self.sizes
        up_k, up_v = self.kv_up.weight.view(self.heads, -1, s.kv_rank).split([s.plain, s.value], 1)
        plain, turned = q.split([s.plain, s.turned], -1)
        q = torch.cat([torch.einsum("bthk,hkc->bhtc", plain, up_k), turned.transpose(1, 2)], -1)
        c = F.scaled_dot_product_attention(
            q, latents, latents[..., : s.kv_rank], mask, scale=self.scale, enable_gqa=True
        )
        return cast("Tensor", self.out(torch.einsum("bhtc,hvc->bthv", c, up_v).flatten(-2)))


def make_queries(width: int, out: int, rank: int | None, eps: float) -> nn.Module:
    """W^UQ norm(W^DQ h), or one matrix."""
    if rank is None:
        return nn.Linear(width, out, bias=False)
    down, up = nn.Linear(width, rank, bias=False), nn.Linear(rank, out, bias=False)
    return nn.Sequential(OrderedDict(down=down, norm=nn.RMSNorm(rank, eps), up=up))


def turn(x: Tensor, angles: tuple[Tensor, Tensor]) -> Tensor:
    """x (b, t, h, d_R) turned, in neighbouring pairs, by angles (t, d_R/2) or (b, t, d_R/2)."""
    cos, sin = (a[..., None, :].to(x.dtype) for a in angles)
    return rotate_pairs(x, cos, sin)


class LatentBlock(DecodingBlock):
    """y = x + attention(norm(x)),  x' = y + mlp(norm(y)), with the latents in the cache and absorbed attention."""

    def __init__(self, norm_1: nn.Module, attn: LatentAttention, norm_2: nn.Module, mlp: nn.Module):
        self.norm_1, self.attn, self.norm_2, self.mlp = norm_1, attn, norm_2, mlp
        self.cached, self.turned = (1, 1, attn.sizes.kv_rank + attn.sizes.turned), attn.sizes.turned

    def weights(self) -> None:
        return None

    def attend(self, n: Tensor, layer: Layer, angles: Angles) -> Tensor:
        assert angles is not None
        layer.new.copy_(self.attn.latents(n, angles)[None, :, None])
        return self.attn.attend_absorbed(self.attn.queries(n, angles), layer.k, layer.write_mask())
