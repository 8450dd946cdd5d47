"""Low rank: the nearest matrix of rank r, and how much of a matrix it holds.

    ΔW = U S Vᵀ,   σ_1 ≥ σ_2 ≥ …
    min over rank(X) ≤ r of ‖ΔW − X‖_F² = Σ_{i>r} σ_i²        at X = U_r S_r V_rᵀ  (Eckart-Young)
    share(r) = Σ_{i≤r} σ_i² / Σ_i σ_i²
    effective rank = the smallest r with share(r) ≥ 0.9

With B = U_r S_r and A = V_rᵀ this is the best update that LoRA of rank r can hold. Fine-tuning is said to need few
directions: share(r) of ΔW = W_fine − W_pre is near 1 for small r. A random matrix has no such r.

Systems: lora
"""

from __future__ import annotations

import torch
from torch import Tensor


def nearest_of_rank(delta: Tensor, rank: int) -> tuple[Tensor, Tensor]:
    """B (out, r) and A (r, in), whose product is the nearest matrix of this rank."""
    u, s, vt = torch.linalg.svd(delta, full_matrices=False)
    return u[:, :rank] * s[:rank], vt[:rank]


def energy_share(delta: Tensor) -> Tensor:
    """share(r) for r = 1, 2, ..; 1 everywhere where ΔW is 0."""
    energy = torch.linalg.svdvals(delta).double().square()
    total = energy.sum()
    return energy.cumsum(0) / total if total > 0 else torch.ones_like(energy)


def effective_rank(delta: Tensor, share: float = 0.9) -> int:
    """How many directions hold this share of the energy."""
    return int((energy_share(delta) < share).sum()) + 1


def numeric_rank(delta: Tensor) -> int:
    """The rank to rounding."""
    return int(torch.linalg.matrix_rank(delta))
