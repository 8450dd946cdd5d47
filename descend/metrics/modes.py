"""How well generated points cover the modes of a known mixture.

    a point is good     when it lies within 3σ of its nearest mode
    quality             share of points that are good
    h_k                 share of points that are good and nearest to mode k
    modes               number of modes with h_k ≥ (1/10)(1/K): a tenth of an equal share, not a stray point
    overlap             Σ_k min(h_k, 1/K) = 1 − total variation between h and K equal modes; points that are not good
                        are a class of their own, so a generator that sits on one mode has quality 1 but overlap 1/K

A round Gaussian in two dimensions has 1 − exp(−9/2) = 98.9% of its points within 3σ: no generator can do better
honestly.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Modes:
    """Judge of points x (n, d) against centres μ (k, d) and their width σ; the names are those of `score`."""

    mu: Tensor
    sigma: float

    def __call__(self, x: Tensor) -> dict[str, Tensor]:
        """Per point: quality 0 or 1, and, the same for every point, modes and overlap of the whole batch."""
        good, nearest = self.assign(x)
        k = len(self.mu)
        h = torch.bincount(nearest[good], minlength=k) / len(x)
        modes, overlap = (h >= 0.1 / k).sum().float(), h.clamp(max=1 / k).sum()
        return {"quality": good.float(), "modes": modes.expand(len(x)), "overlap": overlap.expand(len(x))}

    def assign(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Whether each point is within 3σ of its nearest centre, and which centre that is."""
        distance, nearest = torch.cdist(x, self.mu.to(x)).min(dim=1)
        return distance <= 3 * self.sigma, nearest
