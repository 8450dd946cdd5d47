"""What keeps the latent z of an energy from explaining everything: penalties R(z), and sets that z must lie in.

    nothing       R = 0
    sparse        R = ‖z‖₁                    settle: sign(z) max(|z| − t, 0)             soft threshold
    counted       R = ‖z‖₀                    settle: z where z² > 2t, else 0             hard threshold
    few           the k largest |z_i|         settle: the others become 0
    ball          ‖z‖ ≤ r, and noise on it    settle: z r / max(r, ‖z‖)                  forward adds σ ε: what is finer
                                                                                          than σ cannot be told
    codes         z one of a codebook         settle: the nearest code                    discrete
    inhibition    R = |z|ᵀ S |z|, S ≥ 0       settle: sign(z) max(|z| − t 2S|z|, 0)       active units silence others

`settle(z, t)` is the proximal map of tR, argmin_u ½‖u − z‖² + t R(u): exact for all but inhibition, where the
threshold is that of the present |z|. Fewer effective dimensions, the first of DLN's options, is a smaller z.

Systems: latent-variable-ebm
"""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Limit(nn.Module):
    """No limit: any z, for nothing."""

    def penalty(self, z: Tensor) -> Tensor:
        """R(z) of each example: (b, k) -> (b)"""
        return z.new_zeros(len(z))

    def settle(self, z: Tensor, t: float) -> Tensor:
        """The z to go on with after a step."""
        return z


class Sparse(Limit):
    """l1."""

    def penalty(self, z: Tensor) -> Tensor:
        return z.abs().sum(1)

    def settle(self, z: Tensor, t: float) -> Tensor:
        return z.sign() * (z.abs() - t).clamp(min=0)


class Counted(Limit):
    """l0."""

    def penalty(self, z: Tensor) -> Tensor:
        return (z != 0).sum(1).to(z.dtype)

    def settle(self, z: Tensor, t: float) -> Tensor:
        return torch.where(z.square() > 2 * t, z, 0.0)


class Largest(Limit):
    """At most k numbers of z are not 0."""

    def __init__(self, k: int):
        super().__init__()
        self.k = k

    def settle(self, z: Tensor, t: float) -> Tensor:
        least = z.abs().topk(self.k, 1).values[:, -1:]
        return torch.where(z.abs() >= least, z, 0.0)


class Ball(Limit):
    """‖z‖ ≤ r."""

    def __init__(self, radius: float = 1.0):
        super().__init__()
        self.radius = radius

    def settle(self, z: Tensor, t: float) -> Tensor:
        return z * (self.radius / z.norm(dim=1, keepdim=True).clamp(min=self.radius))

    def blur(self, z: Tensor, noise: Tensor, sigma: float) -> Tensor:
        """z + σ ε: in a ball only about (r/σ)^k values can be told apart."""
        return z + sigma * noise


class Codes(Limit):
    """z is a row of the codebook (m, k)."""

    codes: Tensor

    def __init__(self, codes: Tensor):
        super().__init__()
        self.register_buffer("codes", codes)

    def settle(self, z: Tensor, t: float) -> Tensor:
        return self.codes[torch.cdist(z, self.codes).argmin(1)]


class Inhibition(Limit):
    """|z|ᵀ S |z| with S (k, k) symmetric, not negative and 0 on its diagonal."""

    links: Tensor

    def __init__(self, links: Tensor):
        super().__init__()
        if bool((links < 0).any()) or bool(links.diagonal().any()) or not torch.equal(links, links.T):
            raise ValueError("inhibition is symmetric, not negative, and no unit inhibits itself")
        self.register_buffer("links", links)

    def penalty(self, z: Tensor) -> Tensor:
        return ((z.abs() @ self.links) * z.abs()).sum(1)

    def settle(self, z: Tensor, t: float) -> Tensor:
        return z.sign() * (z.abs() - 2 * t * (z.abs() @ self.links)).clamp(min=0)
