"""State-space layers: a linear recurrence in place of attention, fixed or (`Selective`) chosen by the input.

    fixed       u (b, t, d): each channel has its own state of n numbers;   y = K * u + D u,   K_k = C Āᵏ B̄
                A = -e^{A_log} < 0, step Δ = e^{log Δ} for each channel, zero-order hold
    selective   [x, z] = W_in u;   x = SiLU(conv(x))  (causal, k places, each channel alone)
                [δ, B, C] = W_x x;   Δ = softplus(W_Δ δ + b_Δ)
                h_t = e^{Δ A} h_{t-1} + Δ B_t x_t;   y_t = C_t h_t + D x_t;   out = W_out (y ⊙ SiLU(z))

Both are O(T) in the length. In training the whole sequence is one convolution or one scan; in writing a step costs the
same whatever came before: the state is all that is remembered.

Systems: state-space-layer, mamba
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from descend.ops.state_space import convolution, hold, kernel, recurrence, selective, selective_step


class StateSpace(nn.Module):
    """u (b, t, d) -> y (b, t, d) by the convolution; `steps` is the same by the recurrence."""

    def __init__(self, width: int, state: int = 16, smallest: float = 1e-3, largest: float = 1e-1):
        super().__init__()
        self.a_log = nn.Parameter(torch.arange(1, state + 1).float().log().repeat(width, 1))
        self.log_delta = nn.Parameter(torch.empty(width, 1).uniform_(math.log(smallest), math.log(largest)))
        self.b = nn.Parameter(torch.ones(width, state))
        self.c = nn.Parameter(torch.randn(width, state) / math.sqrt(state))
        self.d = nn.Parameter(torch.ones(width))

    def discrete(self) -> tuple[Tensor, Tensor]:
        """Ā and B̄ (d, n)"""
        return hold(-self.a_log.exp(), self.b, self.log_delta.exp())

    def forward(self, u: Tensor) -> Tensor:
        return convolution(kernel(*self.discrete(), self.c, u.shape[-2]), u) + self.d * u

    def steps(self, u: Tensor) -> Tensor:
        """One step after another."""
        return recurrence(*self.discrete(), self.c, u) + self.d * u


class Remembered(NamedTuple):
    """All that a selective layer knows of the past: the last k - 1 inputs of its convolution, and its state."""

    inputs: Tensor
    """(b, d, k - 1)"""
    h: Tensor
    """(b, d, n)"""


class Selective(nn.Module):
    """Mamba's mixer: u (b, t, width) -> (b, t, width)"""

    def __init__(self, width: int, inner: int, state: int, places: int, rank: int):
        super().__init__()
        self.inner, self.state, self.rank = inner, state, rank
        self.in_proj = nn.Linear(width, 2 * inner, bias=False)
        self.conv = nn.Conv1d(inner, inner, places, groups=inner)
        self.x_proj = nn.Linear(inner, rank + 2 * state, bias=False)
        self.dt_proj = nn.Linear(rank, inner)
        self.a_log = nn.Parameter(torch.arange(1, state + 1).float().log().repeat(inner, 1))
        self.d = nn.Parameter(torch.ones(inner))
        self.out_proj = nn.Linear(inner, width, bias=False)

    def forward(self, u: Tensor) -> Tensor:
        return self.read(u)[0]

    def read(self, u: Tensor, real: Tensor | None = None) -> tuple[Tensor, Remembered]:
        """The outputs and what is remembered after the last step; `real` (b, t) is False at padding, on the left."""
        kept = self.conv.kernel_size[0] - 1
        if real is not None:
            u = u * real[..., None]
        x, z = self.in_proj(u).chunk(2, dim=-1)
        padded = F.pad(x.transpose(1, 2), (kept, 0))
        x = F.silu(self.conv(padded)).transpose(1, 2)
        if real is not None:
            x = x * real[..., None]
        delta, b, c = self.select_parameters(x)
        y, h = selective(x, delta, -self.a_log.exp(), b, c)
        out = self.out_proj((y + self.d * x) * F.silu(z))
        return out, Remembered(padded[..., padded.shape[-1] - kept :], h)

    def step(self, u: Tensor, past: Remembered) -> tuple[Tensor, Remembered]:
        """One more input (b, width)."""
        x, z = self.in_proj(u).chunk(2, dim=-1)
        window = torch.cat([past.inputs, x[..., None]], dim=-1)
        x = F.silu(self.conv(window)[..., 0])
        delta, b, c = self.select_parameters(x)
        y, h = selective_step(past.h, x, delta, -self.a_log.exp(), b, c)
        return self.out_proj((y + self.d * x) * F.silu(z)), Remembered(window[..., 1:], h)

    def select_parameters(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Δ, B and C: the input decides what is written, what is forgotten and what is read."""
        delta, b, c = self.x_proj(x).split([self.rank, self.state, self.state], dim=-1)
        return F.softplus(self.dt_proj(delta)), b, c
