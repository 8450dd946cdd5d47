"""Uniform convergence: how far the training error of any function of a class can be from its population error.

    E sup_h (R(h) − R_n(h)) ≤ 2 R_n(H)          R_n(H) = E_σ sup_h (1/n) Σ σ_i h(x_i),  σ_i = ±1     (h: the losses)
    linear, ‖w‖ ≤ B     R_n = (B/n) E ‖Σ σ_i x_i‖ ≤ B max‖x_i‖ / √n
    finite class, losses in [0, 1]:  |R − R_n| ≤ √((ln|H| + ln(2/δ)) / (2N)) for all h at once, with probability 1 − δ

The factor is 2. The finite bound is Hoeffding's with a union; DLD asks instead that N be much larger than |H|, which
suffices but is far too strict: N has to exceed ln|H|. |H| = 10⁶ and N = 10⁴ give 0.03. The VC dimension is only named.

Systems: uniform-convergence-bounds
"""

from __future__ import annotations

import math

import torch
from torch import Tensor


def finite_class_bound(functions: int, examples: int, delta: float) -> float:
    """√((ln|H| + ln(2/δ)) / (2N))."""
    return math.sqrt((math.log(functions) + math.log(2 / delta)) / (2 * examples))


def draw_signs(draws: int, n: int, random: torch.Generator) -> Tensor:
    """σ (draws, n), ±1 alike."""
    return 2 * torch.randint(2, (draws, n), generator=random).double() - 1


def rademacher(values: Tensor, signs: Tensor) -> float:
    """R_n of a finite class with values h(x_i) (functions, n), over drawn signs (draws, n)."""
    return float((signs @ values.double().T).amax(-1).mean()) / values.shape[1]


def linear_rademacher(x: Tensor, bound: float, signs: Tensor) -> float:
    """R_n of x ↦ w·x, ‖w‖ ≤ B, on points x (n, d): the supremum is exact for every draw of signs."""
    return bound * float((signs @ x.double()).norm(dim=-1).mean()) / len(x)


def linear_bound(x: Tensor, bound: float) -> float:
    """B max‖x_i‖ / √n."""
    return bound * float(x.norm(dim=-1).max()) / math.sqrt(len(x))


def widest_gap(risks: Tensor, empirical: Tensor) -> Tensor:
    """sup_h (R(h) − R_n(h)) for risks (functions) and training errors (.., functions)."""
    return (risks - empirical).amax(-1)
