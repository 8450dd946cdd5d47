"""From scores or energies to probabilities: divide by the volume.

    any g ≥ 0          p(y) = g(y) / volume(g)              volume: Σ_y g on a finite set, ∫ g dy on a grid
    g = f²  or  e^f    so that f may be any number
    Gaussian           g = exp(−(y − μ)²/2s²)               volume √(2πs²)
    exponential        g = exp(−λ y), y ≥ 0                 volume 1/λ
    Gibbs              p(y) = exp(−E(y)) / Z                Z = Σ exp(−E) or ∫ exp(−E) dy, the partition function
    ratio              p(y₊) / p(y₋) = exp(−(E₊ − E₋))      Z cancels
    ∇_θ log Z          = −E_p[∇_θ E(y)]                     exact where all y can be listed

Normalising makes scores relative: adding the same to all of them changes nothing.
Errata: DLN says that E is an unnormalised probability and −E the energy. E is the energy, low for what is plausible,
and e^−E the unnormalised probability. In the middle of its derivation of ∇ log Z one minus is too many; the result is
right. On a grid `volume` is the size of a cell, 1 on a finite set; sums are taken in the log domain.

Systems: gibbs-distribution
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

Energy = Callable[[Tensor], Tensor]
"""points (n, d) -> energies (n)"""


def log_partition(energies: Tensor, volume: float = 1.0) -> Tensor:
    """log Z over the last axis, which lists every y (or the middles of the cells of a grid)."""
    return (-energies).logsumexp(-1) + math.log(volume)


def gibbs(energies: Tensor, volume: float = 1.0) -> Tensor:
    """exp(−E)/Z over the last axis: probabilities, or densities on a grid."""
    return (-energies - log_partition(energies, volume).unsqueeze(-1)).exp()


def normalise_exponential(f: Tensor, volume: float = 1.0) -> Tensor:
    """e^f / volume(e^f): the softmax; f is minus the energy."""
    return gibbs(-f, volume)


def normalise_square(f: Tensor, volume: float = 1.0) -> Tensor:
    """f² / volume(f²)"""
    square = f.square()
    return square / (square.sum(-1, keepdim=True) * volume)


def likelihood_ratio(e_plus: Tensor, e_minus: Tensor) -> Tensor:
    """p(y₊)/p(y₋) = exp(−(E₊ − E₋)): no Z is needed."""
    return (e_minus - e_plus).exp()


def integrate_energy(energy: Energy, points: Tensor, volume: float, chunk: int = 16384) -> Tensor:
    """log Z of an energy of points (n, d), from the middles of a grid's cells and the volume of one."""
    return log_partition(torch.cat([energy(part) for part in points.split(chunk)]), volume)


# The gradient of log p where all y can be listed


def grad_log_partition(energies: Tensor, parameters: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """∇_θ log Z = −E_p[∇_θ E(y)] for energies (n) of all y: the expectation of gradients, not the gradient of log Z.

    Systems: ebm-likelihood-gradient
    """
    p = gibbs(energies).detach()
    return tuple(-g for g in torch.autograd.grad((p * energies).sum(), parameters, retain_graph=True))


def grad_log_likelihood(energies: Tensor, seen: Tensor, parameters: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """∇_θ Σ_i log p(y_i | x_i) = −Σ_i ∇E(x_i, y_i) + Σ_i E_p(y|x_i)[∇E(x_i, y)]: pull down data, push up the model.

    Energies (b, n) of all y for every x_i, and the number (b) of the y that was seen with each. DLN writes the second
    sum as N E[..] with one x; every x_i has its own expectation.

    Systems: ebm-likelihood-gradient
    """
    p = gibbs(energies).detach()
    contrast = (p * energies).sum() - energies.gather(-1, seen[..., None]).sum()
    return torch.autograd.grad(contrast, parameters, retain_graph=True)
