"""What depth buys: a folding map, and the parity of bits.

    tent(y) = 2 relu(y) − 4 relu(y − 1/2)          folds [0, 1] onto itself: 2 units
    tent ∘ … ∘ tent, k times                       2k units, 2^k linear pieces; one hidden layer needs 2^k − 1 units
    xor(a, b) = relu(a + b) − 2 relu(a + b − 1)    of two bits: 2 units
    a tree of xors on n = 2^k bits                 k levels, n − 1 gates, 2 (n − 1) units

Erratum: MF 9.2.3 and VOM 5.2.1 say that one hidden layer needs about 2^(n−1) units for parity. This is the number of
terms of an AND/OR formula (DNF). Parity depends on the sum s of the bits alone, so n units are exact:

    relu          relu(s) + Σ_{k=1}^{n−1} 2 (−1)^k relu(s − k)
    thresholds    Σ_{k=1}^{n} (−1)^(k−1) [s ≥ k]

The tent map is what separates deep from shallow ReLU networks: n hidden units make at most n + 1 pieces on a line.

Systems: depth-versus-width
"""

from __future__ import annotations

import torch
from torch import Tensor, relu


def tent(y: Tensor) -> Tensor:
    """2 relu(y) − 4 relu(y − 1/2)."""
    return 2 * relu(y) - 4 * relu(y - 0.5)


def fold(y: Tensor, times: int) -> Tensor:
    """tent ∘ … ∘ tent of numbers in [0, 1]: a network of this many layers with two units each."""
    for _ in range(times):
        y = tent(y)
    return y


def count_pieces(values: Tensor) -> int:
    """Linear pieces of a function from its values at equal steps that include all of its kinks."""
    slopes = values.diff()
    return 1 + int((slopes.diff().abs() > 1e-9 * slopes.abs().max()).sum())


def tent_units(times: int) -> int:
    """Hidden units of the deep network: 2k."""
    return 2 * times


def shallow_units(pieces: int) -> int:
    """The fewest units of one hidden layer with so many pieces on a line: each unit adds one kink."""
    return pieces - 1


def xor(a: Tensor, b: Tensor) -> Tensor:
    """relu(a + b) − 2 relu(a + b − 1), for bits."""
    return relu(a + b) - 2 * relu(a + b - 1)


def tree_parity(bits: Tensor) -> Tensor:
    """Parity of bits (.., 2^k) by k levels of pairwise xors."""
    n = bits.shape[-1]
    if n & (n - 1):
        raise ValueError(f"{n} bits: a tree of pairs needs a power of two; pad with zeros, which change nothing")
    while bits.shape[-1] > 1:
        bits = xor(bits[..., 0::2], bits[..., 1::2])
    return bits[..., 0]


def shallow_parity(bits: Tensor) -> Tensor:
    """Parity of bits (.., n) by one hidden layer of n ReLU units."""
    n, s = bits.shape[-1], bits.sum(-1, keepdim=True)
    k = torch.arange(n, dtype=bits.dtype)
    weight = 2 * (-1) ** k
    weight[0] = 1
    return relu(s - k) @ weight


def threshold_parity(bits: Tensor) -> Tensor:
    """Parity of bits (.., n) by one hidden layer of n threshold units."""
    n, s = bits.shape[-1], bits.sum(-1, keepdim=True)
    k = torch.arange(1, n + 1, dtype=bits.dtype)
    return (s >= k).to(bits.dtype) @ (-1) ** (k - 1)


def formula_terms(n: int) -> int:
    """Terms of the shortest OR of ANDs for parity: one for each odd input, 2^(n−1)."""
    return int(2 ** (n - 1))


def list_bits(n: int) -> Tensor:
    """All 2^n inputs, (2^n, n)."""
    return torch.cartesian_prod(*[torch.tensor([0.0, 1.0], dtype=torch.float64)] * n).view(-1, n)
