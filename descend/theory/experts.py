"""What a mixture of experts costs: the share that is active, and against a dense model.

    experts      k / N of the expert parameters
    model        (shared + k expert) / (shared + N expert): more than k / N, attention and embeddings are always active
    cost         active / active of the model compared with; memory is that of all parameters

Mixtral: 2/8 of the experts, 12.88 / 46.70 = 0.276 of the parameters (S940 writes 2/E of the parameters, an erratum).

Systems: mixture-of-experts, mixtral
"""

from __future__ import annotations


def expert_fraction(k: int, experts: int) -> float:
    """k / N"""
    return k / experts


def active_fraction(active: float, total: float) -> float:
    """Active over total parameters."""
    return active / total


def relative_cost(active: float, reference: float) -> float:
    """Arithmetic for a token against another model's, by active parameters."""
    return active / reference
