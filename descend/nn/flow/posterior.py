"""A flow as the posterior of a VAE: a Gaussian that inverse autoregressive layers bend, given what the encoder found.

    z_0 = μ + σ ∘ ε,  ε ~ N(0, I)        z_k = e^{s_k(z_{k−1}, h)} ∘ z_{k−1} + b_k(z_{k−1}, h)
    log q(z_K | x) = log N(z_0; μ, σ²) − Σ_k Σ_n s_kn

Sampling is parallel, and the density of what was sampled comes for free: all that the bound of a VAE asks for. h is any
vector of the encoder's. New layers are near the identity, so that training begins with the Gaussian posterior.

Systems: inverse-autoregressive-flow
"""

from __future__ import annotations

import math

from torch import Tensor, nn

from descend.nn.flow.autoregressive import InverseAutoregressive, orders
from descend.nn.flow.made import MADE
from descend.nn.flow.transforms import Affine


class FlowPosterior(nn.Module):
    """μ, log σ² (b, size), h (b, context) and noise ε (b, size) -> z (b, size) and log q(z | x) (b)"""

    def __init__(self, size: int, context: int, layers: int, width: int, depth: int = 1):
        super().__init__()
        made = (MADE(degrees, Affine.numbers, width, depth, context) for degrees in orders(size, layers))
        self.layers = nn.ModuleList(InverseAutoregressive(network, Affine()) for network in made)

    def forward(self, mean: Tensor, log_var: Tensor, context: Tensor, eps: Tensor) -> tuple[Tensor, Tensor]:
        z = mean + (0.5 * log_var).exp() * eps
        log_q = -0.5 * (eps.square() + log_var + math.log(2 * math.pi)).sum(1)
        for layer in self.layers:
            z, log_det = layer(z, context)
            log_q = log_q - log_det
        return z, log_q
