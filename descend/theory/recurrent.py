"""Counts and closed forms of recurrent nets: parameters, memory of BPTT, and what a product of factors does in time.

    parameters     RNN d_h² + d_h d_x + d_h (+ d_y d_h + d_y)   LSTM 4 (d_h (d_h + d_x) + d_h)   GRU 3 (…)
    memory         T · d_h · bytes of hidden states for each sequence; with truncation τ in place of T; decimal MB
    condition      κ_T = ρᵀ, ρ the spectral radius of W_hh:   → 0 vanishing   = 1 critical   → ∞ exploding
    bound          ‖∂h⁽ᵗ⁾/∂h⁽ᵏ⁾‖ ≤ (max |σ'| · ‖W_hh‖)ᵗ⁻ᵏ             the NORM, not the radius
    highway        ∂c_T/∂c_0 = Π f_t along the direct path          a PRODUCT, which decays for f < 1
    bottleneck     dimensions of a whole sentence over those of one context vector

Errata, and the form taken: MF 15.5.2 exchanges norm and spectral radius (‖Wⁿ‖ → 0 holds iff ρ < 1, after a possible
growth, while ‖W‖ⁿ may explode) and gives tanh the greatest slope 1/4, which is the sigmoid's; tanh'(0) = 1. MF 16.4.1
writes a sum of the f_t. VOM 6.4.2 prints powers with the wrong exponents: T steps have T - 1 factors, 0.9⁴⁹ = 0.00573
and 1.1⁴⁹ = 106.72. S940 4.2: all norms below 1 are not enough for decay (Π (1 - 1/t²) → ½), norms above 1 not for
growth.

Systems: vanishing-exploding-in-time, lstm-gradient-highway, truncated-bptt, rnn-encoder-decoder
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import torch
from torch import Tensor

MEGABYTE = 1e6
"""Decimal, as MF counts."""
TANH_SLOPE, SIGMOID_SLOPE = 1.0, 0.25
"""The greatest slopes, both at 0."""


def rnn_parameters(inputs: int, hidden: int, outputs: int = 0) -> int:
    """One hidden bias; with outputs also W_hy and b_y."""
    return hidden * (hidden + inputs + 1) + outputs * (hidden + 1) * (outputs > 0)


def lstm_parameters(inputs: int, hidden: int) -> int:
    """4 (h (h + d) + h)"""
    return 4 * hidden * (hidden + inputs + 1)


def gru_parameters(inputs: int, hidden: int, biases: int = 1) -> int:
    """3 (h (h + d) + biases · h): S940 has no bias, torch two."""
    return 3 * hidden * (hidden + inputs + biases)


def state_megabytes(steps: int, hidden: int, batch: int = 1, bytes_each: int = 4, tau: int | None = None) -> float:
    """The hidden states that BPTT keeps."""
    return min(steps, tau or steps) * hidden * bytes_each * batch / MEGABYTE


def factor(slope: float, steps: int) -> float:
    """slope^steps: what is left of a gradient after this many equal factors"""
    return slope**steps


def temporal_condition(w_hh: Tensor, steps: int) -> tuple[float, float, str]:
    """ρ, κ_T = ρᵀ and the regime."""
    rho = radius(w_hh)
    near = math.isclose(rho, 1.0, rel_tol=1e-6)
    return rho, rho**steps, "critical" if near else "vanishing" if rho < 1 else "exploding"


def radius(w: Tensor) -> float:
    """The largest absolute eigenvalue."""
    return float(torch.linalg.eigvals(w).abs().max())


def norm(w: Tensor) -> float:
    """The largest singular value."""
    return float(torch.linalg.matrix_norm(w, ord=2))


def power_norm(w: Tensor, n: int) -> float:
    """‖Wⁿ‖"""
    return norm(torch.linalg.matrix_power(w, n))


def log10_norm_power(w: Tensor, n: int) -> float:
    """log10 ‖W‖ⁿ, which may be too large for a float"""
    return n * math.log10(norm(w))


def jacobian_bound(w: Tensor, distance: int, slope: float = TANH_SLOPE) -> float:
    """(max |σ'| · ‖W_hh‖)^distance"""
    return (slope * norm(w)) ** distance


def scalar_tanh_gradient(w: float, x: float, steps: int) -> float:
    """Π_t w (1 - h_t²) for h_t = tanh(w h_{t-1} + x) from h_0 = 0: a net of one unit under constant input"""
    h, found = 0.0, 1.0
    for _ in range(steps):
        h = math.tanh(w * h + x)
        found *= w * (1 - h * h)
    return found


def decay_of(norms: Iterable[float]) -> float:
    """The product of the norms of the steps' Jacobians: an upper bound of the norm of their product"""
    return math.prod(norms)


def where_tanh_slope_is(s: float) -> float:
    """z with 1 - tanh² z = s"""
    return math.atanh(math.sqrt(1 - s))


def highway(f: Tensor) -> Tensor:
    """∂c_T/∂c_0 along the direct path: Π_t f_t over the first axis"""
    return f.prod(dim=0)


def bottleneck(total: float, words: int, context: int) -> tuple[float, float]:
    """Dimensions for each word, and how far one context vector compresses the sentence."""
    return total / words, total / context
