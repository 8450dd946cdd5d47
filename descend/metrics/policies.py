"""What to watch while a policy learns: how far it has moved, how much of that is clipped, what the critic knows.

approximate KL       E[(r − 1) − log r],  r = π_θ(a|s) / π_old(a|s),  a ~ π_old      never below 0, unbiased
clip fraction        share of the steps with |r − 1| > ε: their surrogate is flat in one direction
explained variance   1 − Var(G − V) / Var(G)        1: V is G; 0: no better than a constant; below: worse
"""

from __future__ import annotations

from torch import Tensor


def approximate_kl(log_ratio: Tensor) -> Tensor:
    """KL(π_old ‖ π_θ), estimated from log r of sampled actions."""
    return (log_ratio.exp() - 1 - log_ratio).mean()


def clip_fraction(ratio: Tensor, eps: float) -> Tensor:
    """The share of the ratios outside [1 − ε, 1 + ε]."""
    return ((ratio - 1).abs() > eps).to(ratio.dtype).mean()


def explained_variance(value: Tensor, target: Tensor) -> Tensor:
    """1 − Var(G − V) / Var(G); 0 where the targets do not vary."""
    spread = target.var(correction=0)
    return (1 - (target - value).var(correction=0) / spread).where(spread > 0, 0.0)
