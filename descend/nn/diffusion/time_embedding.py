"""The time step as a vector: sinusoids of t, then two layers, so that a network knows the noise level.

    γ_i(t) = sin(ω_i t),  γ_{i+d/2}(t) = cos(ω_i t)         ω_i = 10000^(−i/(d/2 − shift)),  i = 0 .. d/2 − 1
    e = W_2 silu(W_1 γ(t) + b_1) + b_2

With shift 0 these are the numbers of the transformer's encoding at position t, the sines first and then the cosines
instead of in turn. The released code of DDPM has shift 1, which takes the slowest wave to exactly 10000; Stable
Diffusion puts the cosines first. t may be a fraction: sub-sequences and continuous time need no table.

Systems: diffusion-unet
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

BASE = 10000.0


def embed_time(t: Tensor, width: int, shift: int = 0, cosine_first: bool = False) -> Tensor:
    """γ(t) (b, d) of time steps t (b,), in float32; an odd width ends with a 0."""
    half = width // 2
    if half <= shift:
        raise ValueError(f"a time embedding of width {width} has no wave left with shift {shift}; give a larger width")
    exponent = torch.arange(half, dtype=torch.float32, device=t.device) / (half - shift)
    angle = t.float()[:, None] * torch.pow(torch.tensor(BASE, device=t.device), -exponent)
    halves = (angle.cos(), angle.sin()) if cosine_first else (angle.sin(), angle.cos())
    return F.pad(torch.cat(halves, dim=-1), (0, width % 2))


class TimeEmbedding(nn.Module):
    """γ (b, d) -> e (b, out)"""

    def __init__(self, width: int, out: int):
        super().__init__()
        self.linear_1 = nn.Linear(width, out)
        self.linear_2 = nn.Linear(out, out)

    def forward(self, waves: Tensor) -> Tensor:
        return self.linear_2(F.silu(self.linear_1(waves.to(self.linear_1.weight.dtype))))


def spread_time(t: Tensor | float, batch: int, device: torch.device) -> Tensor:
    """One time for all images, or one for each: (b,)."""
    t = torch.as_tensor(t, device=device)
    return t.expand(batch) if t.dim() == 0 or len(t) == 1 else t
