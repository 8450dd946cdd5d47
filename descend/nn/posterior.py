"""Amortised posteriors q(z|x): from what an encoder makes of x to codes, their density, and their KL from N(0, I).

    Gaussian   μ = A h + a,  log σ² = B h + b: two branches of one network        z = μ + σ ε
               log q(z|x) = log N(ε; 0, I) − ½ Σ log σ²         KL in closed form
    flow       z_0 from the Gaussian, then K planar steps whose numbers come from h, too
               log q(z_K|x) = log q(z_0|x) − Σ log|det|
               KL = KL(q_0 ‖ p) + E[log p(z_0) − log p(z_K) − Σ log|det|]        K = 0: the Gaussian's

The noise ε (b, s, k), s samples for each example, is given. A single Gaussian is poor where the true posterior has
several modes; a flow can bend it. The log-variance is what the network gives, so σ² > 0 always.

Systems: vae, flow-posterior-vae
"""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor, nn

from descend.ops.latent import gaussian_kl, reparameterize, standard_normal_log_prob
from descend.ops.latent_flows import planar_flow


class Posterior(NamedTuple):
    """Samples of q(z|x) for b examples."""

    z: Tensor
    """(b, s, k)"""
    log_q: Tensor
    """log q(z|x) (b, s)"""
    kl: Tensor
    """KL(q(z|x) ‖ N(0, I)), exact or estimated by the samples (b)"""


class GaussianPosterior(nn.Module):
    """h (b, d), ε (b, s, k) -> samples of N(μ, diag σ²)"""

    def __init__(self, inputs: int, latent: int):
        super().__init__()
        self.mu, self.log_var = nn.Linear(inputs, latent), nn.Linear(inputs, latent)

    def moments(self, h: Tensor) -> tuple[Tensor, Tensor]:
        """μ and log σ² (b, k)"""
        return self.mu(h), self.log_var(h)

    def forward(self, h: Tensor, eps: Tensor) -> Posterior:
        mu, log_var = self.moments(h)
        z = reparameterize(mu[:, None], log_var[:, None], eps)
        log_q = standard_normal_log_prob(eps) - log_var.sum(-1, keepdim=True) / 2
        return Posterior(z, log_q, gaussian_kl(mu, log_var))


class FlowPosterior(GaussianPosterior):
    """The same, pushed through `steps` planar maps."""

    def __init__(self, inputs: int, latent: int, steps: int):
        super().__init__(inputs, latent)
        self.latent = latent
        self.steps = nn.ModuleList(nn.Linear(inputs, 2 * latent + 1) for _ in range(steps))

    def forward(self, h: Tensor, eps: Tensor) -> Posterior:
        start = super().forward(h, eps)
        z, log_q = start.z, start.log_q
        for step in self.steps:
            u, w, b = step(h)[:, None].split([self.latent, self.latent, 1], dim=-1)
            z, log_det = planar_flow(z, u, w, b[..., 0])
            log_q = log_q - log_det
        moved = standard_normal_log_prob(start.z) - start.log_q - standard_normal_log_prob(z) + log_q
        return Posterior(z, log_q, start.kl + moved.mean(1))
