"""Three ways to spoil the input of a denoising autoencoder; what it must give back is the clean x.

    Gaussian          x̃ = x + σ Φ⁻¹(u)                           zero-mean noise of standard deviation σ
    masking           x̃ = x where u ≥ p, else 0                   a share p of the numbers is gone
    salt and pepper   x̃ = 0 where u < p/2, 1 where u ≥ 1 − p/2     a share p becomes black or white

u, uniform in 0..1, of x's shape, comes with the batch: randomness is data, so that a resumed run sees the same.

Systems: denoising-autoencoder
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

LEAST = 1e-7  # u is kept this far from 0 and 1, where Φ⁻¹ is infinite


class GaussianCorruption(nn.Module):
    """x̃ = x + σ ε"""

    def __init__(self, sigma: float):
        super().__init__()
        if sigma < 0:
            raise ValueError(f"sigma {sigma} is a standard deviation: 0 or more")
        self.sigma = sigma

    def forward(self, x: Tensor, u: Tensor) -> Tensor:
        return x + self.sigma * torch.special.ndtri(u.clamp(LEAST, 1 - LEAST))


class MaskingCorruption(nn.Module):
    """x̃ = x ⊙ 1[u ≥ p]"""

    def __init__(self, share: float):
        super().__init__()
        self.share = check_share(share)

    def forward(self, x: Tensor, u: Tensor) -> Tensor:
        return x * (u >= self.share)


class SaltAndPepper(nn.Module):
    """A share p of the numbers becomes 0 or 1, each half of the time."""

    def __init__(self, share: float):
        super().__init__()
        self.share = check_share(share)

    def forward(self, x: Tensor, u: Tensor) -> Tensor:
        x = torch.where(u < self.share / 2, 0.0, x)
        return torch.where(u >= 1 - self.share / 2, 1.0, x)


def check_share(share: float) -> float:
    if not 0 <= share <= 1:
        raise ValueError(f"share {share}: between 0 and 1")
    return share
