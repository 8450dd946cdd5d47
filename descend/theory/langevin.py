"""What discretised Langevin dynamics does to a Gaussian, in closed form.

    chain            y' = y + η s(y) + √(2η) ε,  s(y) = −y/v          y' = (1 − η/v) y + √(2η) ε
    after k steps    m_k = (1 − η/v)^{2k} m_0 + 2η (1 − (1 − η/v)^{2k}) / (1 − (1 − η/v)²)       the second moment
    stationary       2η / (1 − (1 − η/v)²) = v / (1 − η/2v)           too wide by the second factor; v as η → 0
    other steps      y' = y + (δ/2) s + √δ ε is the same with η = δ/2: v / (1 − δ/4v)
    unstable         η ≥ 2v: no stationary distribution

    contrastive divergence, E = θ y²/2 (v = 1/θ), data with second moment m
        likelihood's gradient   −m/2 + 1/(2θ)
        CD-K's                  −m/2 + m_K/2,  the chain begun at the data: smaller at K = 1; as K grows it tends to the
                                value of the discretised chain, not quite to the likelihood's

Systems: langevin-sampler, contrastive-divergence
"""

from __future__ import annotations

import math


def stationary_variance(eta: float, v: float = 1.0) -> float:
    """v / (1 − η/2v), infinite where the chain diverges."""
    return v / (1 - eta / (2 * v)) if eta < 2 * v else math.inf


def stationary_variance_by_delta(delta: float, v: float = 1.0) -> float:
    """The same for steps (δ/2, √δ): v / (1 − δ/4v)."""
    return stationary_variance(delta / 2, v)


def second_moment(start: float, eta: float, steps: int, v: float = 1.0) -> float:
    """E[y_k²] after k steps, from E[y_0²]."""
    keep = (1 - eta / v) ** 2
    moment = start
    for _ in range(steps):
        moment = keep * moment + 2 * eta
    return moment


def likelihood_gradient(theta: float, m: float) -> float:
    """d/dθ of the mean log-likelihood under E = θ y²/2, for data with second moment m."""
    return -m / 2 + 1 / (2 * theta)


def divergence_gradient(theta: float, m: float, eta: float, steps: int) -> float:
    """What CD-K follows instead, in expectation."""
    return -m / 2 + second_moment(m, eta, steps, 1 / theta) / 2


def count_updates(first: int, last: int) -> int:
    """Updates for k = first, .., last.

    DLN prints k = 0, .., K for K steps, which makes K + 1 of them, ending in y_{K+1}; for K steps that end in y_K the
    last is K − 1, as in `sampling/langevin.py`.
    """
    return last - first + 1
