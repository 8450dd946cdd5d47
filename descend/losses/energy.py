"""Losses that shape an energy: low at the data, higher elsewhere.

    likelihood        −log p(y₊) = E(y₊) + log Z                      where all y can be listed
    contrast          mean E(y₊) − mean E(y₋),  y₋ ~ p                its gradient is the likelihood's, by samples
    energy alone      mean E(y₊)                                      no contrast: collapses to a flat surface
    hinge             max(0, E(x, y₊) − E(x, y₋) + m)                 m > 0: with m = 0 a constant energy has loss 0
    noise contrast    −log σ(g(y₊)) − ν log σ(−g(y₋)),  g = −E − c − log(ν p_n)       y₋ from a known p_n, ν of them for
                                                                      each datum; c is learned and becomes log Z

Negatives are random, corrupted or found by descent (the hardest). The noise-contrastive estimate is named only in DLN;
the form is that of Gutmann and Hyvärinen (2010).

Systems: ebm-likelihood-gradient, energy-hinge-loss, noise-contrastive-estimation
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from descend.ops.energy.gibbs import Energy, log_partition
from descend.ops.energy.inference import descend_energy


def negative_log_likelihood(energies: Tensor, seen: Tensor, volume: float = 1.0) -> Tensor:
    """E(y₊) + log Z of each example, from the energies (.., n) of all y and the number (..) of the one seen.

    Systems: ebm-likelihood-gradient
    """
    return energies.gather(-1, seen[..., None])[..., 0] + log_partition(energies, volume)


def contrast(e_plus: Tensor, e_minus: Tensor) -> Tensor:
    """mean E(y₊) − mean E(y₋): the gradient is that of −log p when y₋ are samples of the model, held fixed.

    Systems: ebm-likelihood-gradient
    """
    return e_plus.mean() - e_minus.mean()


def energy_hinge(e_plus: Tensor, e_minus: Tensor, margin: float = 1.0) -> Tensor:
    """max(0, E₊ − E₋ + m) of each pair.

    Systems: energy-hinge-loss
    """
    return (e_plus - e_minus + margin).relu()


def noise_contrast(log_model: Tensor, log_noise: Tensor, ratio: float = 1.0) -> Tensor:
    """g = log p_θ − log(ν p_n), the logit by which data are told from noise; log p_θ = −E − c.

    Systems: noise-contrastive-estimation
    """
    return log_model - log_noise - math.log(ratio)


def noise_contrastive_loss(data: Tensor, noise: Tensor, ratio: float = 1.0) -> Tensor:
    """−mean log σ(g(y₊)) − ν mean log σ(−g(y₋)) from the logits g of data (b) and of noise (νb).

    Systems: noise-contrastive-estimation
    """
    return -logsigmoid(data).mean() - ratio * logsigmoid(-noise).mean()


# Where negatives come from


def draw_random(y: Tensor, order: Tensor) -> Tensor:
    """The answers of other examples: y[order], a permutation given by the caller."""
    return y[order]


def corrupt(y: Tensor, noise: Tensor, sigma: float) -> Tensor:
    """y + σ ε"""
    return y + sigma * noise


def find_hardest(energy: Energy, start: Tensor, eta: float, steps: int) -> Tensor:
    """Where descent from `start` ends: the points that the model takes for answers."""
    return descend_energy(energy, start, eta, steps)[-1].detach()


def spread_of(codes: Tensor) -> Tensor:
    """The mean standard deviation of codes (n, d) over the examples: 0 when a network ignores its input.

    Systems: energy-collapse
    """
    return codes.std(0, unbiased=False).mean() if len(codes) > 1 else torch.zeros(())
