"""Linear state-space sequence layers: one recurrence, three ways to compute it.

    x'(t) = A x(t) + B u(t),   y(t) = C x(t) + D u(t)
    zero-order hold over a step Δ:   Ā = e^{ΔA},   B̄ = A⁻¹ (e^{ΔA} - 1) B            A diagonal here, entry by entry
    recurrence       h_t = Ā h_{t-1} + B̄ u_t,   y_t = C h_t + D u_t,   h_0 = 0
    convolution      y = K * u + D u,   K_k = C Āᵏ B̄                        fixed Ā, B̄, C only; by FFT O(T log T)

    selective (Mamba): Δ_t, B_t, C_t depend on the input, so there is no kernel, but still an associative scan
    h_t = a_t h_{t-1} + b_t:    (a, b) ∘ (a', b') = (a a', a' b + b')          "first, then second"
    `pairs` joins neighbours, solves the half as long sequence and fills in the rest: O(T) work in O(log T) rounds
    Mamba takes B̄_t = Δ_t B_t, the first order of the hold; A < 0 is kept as -e^{A_log}

The books only name these layers; the equations are those of the papers (Gu, Goel and Ré 2021; Gu and Dao 2023).

Systems: state-space-layer, mamba
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

WIDE = 4096  # numbers in a step from which steps are faster than rounds; measured on one core


def hold(a: Tensor, b: Tensor, delta: Tensor) -> tuple[Tensor, Tensor]:
    """Ā and B̄ of a diagonal A by zero-order hold, shapes alike."""
    return (delta * a).exp(), torch.expm1(delta * a) / a * b


def recurrence(a: Tensor, b: Tensor, c: Tensor, u: Tensor) -> Tensor:
    """y (…, t, d) for u (…, t, d) and the diagonals a, b, c (d, n), one step after another."""
    h, found = u.new_zeros(*u.shape[:-2], *a.shape, dtype=a.dtype), []
    for u_t in u.unbind(-2):
        h = a * h + b * u_t[..., None]
        found.append((c * h).sum(-1))
    return torch.stack(found, dim=-2)


def kernel(a: Tensor, b: Tensor, c: Tensor, t: int) -> Tensor:
    """K (t, d): K_k = Σ_n c aᵏ b"""
    powers = a ** torch.arange(t, dtype=a.dtype, device=a.device)[:, None, None]
    return (c * powers * b).sum(-1)


def convolution(k: Tensor, u: Tensor) -> Tensor:
    """y_t = Σ_{s ≤ t} K_{t-s} u_s for K (t, d), u (…, t, d); zeros behind keep the FFT from wrapping around."""
    t = u.shape[-2]
    product = torch.fft.rfft(k, 2 * t, dim=-2) * torch.fft.rfft(u, 2 * t, dim=-2)
    return torch.fft.irfft(product, 2 * t, dim=-2)[..., :t, :]


def scan_steps(a: Tensor, b: Tensor) -> Tensor:
    """h_t = a_t h_{t-1} + b_t over the first axis, one step after another: the form to read."""
    h, found = torch.zeros_like(b[0]), []
    for a_t, b_t in zip(a, b, strict=True):
        h = a_t * h + b_t
        found.append(h)
    return torch.stack(found)


def pairs(a: Tensor, b: Tensor) -> Tensor:
    """The same in log2 T rounds: two neighbours become one step of a sequence half as long."""
    if len(a) == 1:
        return b.clone()
    even, h = len(a) - len(a) % 2, torch.empty_like(b)
    h[1::2] = pairs(a[1:even:2] * a[0:even:2], torch.addcmul(b[1:even:2], a[1:even:2], b[0:even:2]))
    h[0] = b[0]
    torch.addcmul(b[2::2], a[2::2], h[1:-1:2], out=h[2::2])
    return h


def solve(a: Tensor, b: Tensor) -> Tensor:
    """The states, without a graph. Where one step is wide, memory is the limit, and a pass over time reads least."""
    if narrow(b):
        return pairs(a, b)
    h = torch.empty_like(b)
    h[0] = b[0]
    for t in range(1, len(b)):
        torch.addcmul(b[t], a[t], h[t - 1], out=h[t])
    return h


def solve_from_end(a: Tensor, b: Tensor) -> Tensor:
    """g_t = b_t + a_{t+1} g_{t+1}, g_T = b_T"""
    if narrow(b):
        return pairs(a.roll(-1, 0).flip(0), b.flip(0)).flip(0)  # the first factor of a scan is never used
    g = torch.empty_like(b)
    g[-1] = b[-1]
    for t in reversed(range(len(b) - 1)):
        torch.addcmul(b[t], a[t + 1], g[t + 1], out=g[t])
    return g


def narrow(b: Tensor) -> bool:
    """Whether rounds beat steps."""
    return b[0].numel() < WIDE or b.is_cuda


class Scan(torch.autograd.Function):
    """The states, and their gradient, a scan from the end: g_t = ∂L/∂h_t + a_{t+1} g_{t+1}, ∂a = g_t h_{t-1}, ∂b = g"""

    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor) -> Tensor:
        h = solve(a, b)
        ctx.save_for_backward(a, h)
        return h

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Tensor, Tensor]:
        a, h = ctx.saved_tensors
        g, a_bar = solve_from_end(a, grads[0]), torch.empty_like(a)
        a_bar[0] = 0
        torch.mul(g[1:], h[:-1], out=a_bar[1:])
        return a_bar, g


def scan(a: Tensor, b: Tensor) -> Tensor:
    """h_t = a_t h_{t-1} + b_t over the first axis, in rounds instead of steps; equal to `scan_steps`."""
    return Scan.apply(a, b)


def selective(u: Tensor, delta: Tensor, a: Tensor, b: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """y (b, t, d) and the last state (b, d, n) for u, Δ (b, t, d), A (d, n), B and C (b, t, n)."""
    step = delta.transpose(0, 1)[..., None]  # time first: (t, b, d, 1)
    forget = (step * a).exp()
    write = step * u.transpose(0, 1)[..., None] * b.transpose(0, 1)[:, :, None, :]
    h = scan(forget, write)
    return torch.einsum("tbdn,btn->btd", h, c), h[-1]


def selective_step(h: Tensor, u: Tensor, delta: Tensor, a: Tensor, b: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """One step from the state h (b, d, n): y (b, d) and the new state, for u, Δ (b, d), B and C (b, n)."""
    h = (delta[..., None] * a).exp() * h + (delta * u)[..., None] * b[:, None, :]
    return torch.einsum("bdn,bn->bd", h, c), h
