"""How regular a latent space is: units in use, continuity, completeness, and how good decoded samples are.

    active units    #{k : E_x KL_k > threshold}                      0 is posterior collapse
    coverage        share of z ~ N(0, I) within r standard deviations of some q(z|x_i): max_k |z_k − μ_ik| / σ_ik ≤ r
                    completeness: what is sampled from the prior was seen by the decoder in training
    roughness       E ‖f(z + δ) − f(z)‖ / ‖δ‖                        continuity: change of the output per latent step
    nearest         E_g min_i ‖g − x_i‖                              distance of generated examples from real ones
    walk            max / mean step of the images along a walk       1 is even, large is a jump

Without the KL term nothing keeps σ from 0 or the means from drifting apart: coverage falls and roughness grows.

Systems: irregular-latent-space, latent-traversals, beta-vae
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

ACTIVE = 0.01  # nats of KL above which a unit carries something
AT_ONCE = 4096  # rows compared together: bounds the memory


def active_units(kl: Tensor, threshold: float = ACTIVE) -> Tensor:
    """Which units are in use, from the KL of each unit and example (n, k): (k)"""
    return kl.mean(0) > threshold


def prior_coverage(z: Tensor, mu: Tensor, log_var: Tensor, reach: float = 2.0) -> Tensor:
    """Share of prior samples z (m, k) inside the box μ_i ± reach σ_i of at least one encoded example (n, k)."""
    found = []
    sigma = (log_var / 2).exp()
    for part in z.split(max(1, AT_ONCE * 64 // max(1, len(mu)))):
        away = (part[:, None] - mu).abs() / sigma
        found.append((away.amax(-1) <= reach).any(1))
    return torch.cat(found).double().mean()


def roughness(decode: Callable[[Tensor], Tensor], z: Tensor, step: Tensor) -> Tensor:
    """Mean change of the decoder's output per latent step: z, step (n, k)"""
    moved = (decode(z + step) - decode(z)).flatten(1).norm(dim=1)
    return (moved / step.norm(dim=1)).mean()


def nearest_distance(made: Tensor, real: Tensor) -> Tensor:
    """Distance of each generated example from the nearest real one: (m, ..), (n, ..) -> (m)"""
    a, b = made.flatten(1), real.flatten(1)
    return torch.cat([torch.cdist(part, b).amin(1) for part in a.split(AT_ONCE)])


def walk_evenness(images: Tensor) -> Tensor:
    """Largest step of a walk over the mean step: images (n, ..) -> a number, 1 for equal steps"""
    steps = images.flatten(1).diff(dim=0).norm(dim=1)
    return steps.max() / steps.mean()
