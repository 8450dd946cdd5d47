"""Gibbs sampling: draw some of the numbers anew, given all the others, in turn.

    one at a time    x_i ~ p(x_i | x_−i)                     binary: p(x_i = 1 | x_−i) = σ(E(x_i = 0) − E(x_i = 1))
    in blocks        h ~ p(h | v),  v ~ p(v | h)             where each block is independent given the other (RBM)

The chain's distribution tends to exp(−E)/Z, whatever it starts from. Uniform numbers u are given, and a bit is 1 where
u < p, so that a chain can be repeated.

Systems: gibbs-contrastive-divergence
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch
from torch import Tensor

from descend.ops.energy.gibbs import Energy

Bits = Callable[[Tensor], Tensor]
"""the bits of one block (n, v) -> the probabilities of the other block's (n, h)"""


def draw_bits(p: Tensor, u: Tensor) -> Tensor:
    """1 where u < p, in the type of p."""
    return (u < p).to(p.dtype)


def gibbs_sweep(energy: Energy, x: Tensor, u: Tensor) -> Tensor:
    """Every bit of x (n, d) once, from the first to the last, with uniform numbers u (n, d); any energy."""
    x = x.clone()
    for i in range(x.shape[1]):
        off, on = x.clone(), x.clone()
        off[:, i], on[:, i] = 0.0, 1.0
        x[:, i] = draw_bits(torch.sigmoid(energy(off) - energy(on)), u[:, i])
    return x


def gibbs_blocks(hidden: Bits, visible: Bits, v: Tensor, uniforms: Iterable[tuple[Tensor, Tensor]]) -> Tensor:
    """The visible bits after one round for each pair of uniform numbers (n, h), (n, v)."""
    for for_hidden, for_visible in uniforms:
        v = draw_bits(visible(draw_bits(hidden(v), for_hidden)), for_visible)
    return v
