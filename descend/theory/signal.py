"""A signal on its way through a random net, in closed form: how its second moment changes with depth.

    z = W a,  W_ij independent with mean 0        E z² = n Var(W) E a²          n = fan_in
    a = relu(z),  z symmetric about 0             E a² = E z² / 2               exactly half of the squares remain
    a layer of both                               q = n Var(W) / 2              after L layers: q^L
    backward, through n_out units                 q = n_out Var(W) / 2

He takes Var(W) = 2/n: q = 1. Xavier with equal fans takes 1/n: q = 1/2, so the signal decays as 2^−L.
DLN says that ReLU halves the variance; it is the second moment. The variance of relu(z), z ~ N(0, 1), is
1/2 − 1/(2π) = 0.3408, since its mean is not 0.
"""

from __future__ import annotations

import math

RELU_KEEPS = 0.5
"""E relu(z)² / E z²"""
RELU_VARIANCE = 0.5 - 1 / (2 * math.pi)
"""Var relu(z) for z ~ N(0, 1)"""


def layer_factor(fan: float, variance: float, kept: float = RELU_KEEPS) -> float:
    """q = n Var(W) kept: what one layer does to the second moment; kept = 1 for a linear layer."""
    return fan * variance * kept


def grow_signal(start: float, factor: float, layers: float) -> float:
    """start · q^L: a signal that every layer multiplies."""
    return start * factor**layers


def risen(start: float, step: float, layers: float) -> float:
    """start + step · L: a stream to which every layer adds the same."""
    return start + step * layers
