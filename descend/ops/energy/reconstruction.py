"""Autoencoders read as energies: what cannot be rebuilt is implausible.

    autoencoder           E(x) = ‖x − Dec(Enc(x))‖²
    denoising             the same network, trained to rebuild x from x + σ ε: x − Dec(Enc(x)) ≈ −σ² ∇ log p(x), so that
                          the residual points away from the data
    variational           E(x) = −ELBO(x) = −E_q log p(x | z) + KL(q(z | x) ‖ p(z)) ≥ −log p(x)

Low energy at the data comes from training; high energy elsewhere comes from what limits the code: its size, noise, or
the KL term. A full-size linear code rebuilds everything, and its energy is 0 everywhere.

Systems: autoencoders-as-ebm
"""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from descend.ops.energy.gibbs import Energy


def reconstruction_energy(rebuild: Callable[[Tensor], Tensor]) -> Energy:
    """x (n, ..) -> ‖x − rebuild(x)‖² (n)"""
    return lambda x: (x - rebuild(x)).square().flatten(1).sum(1)


def bound_energy(elbo: Callable[[Tensor], Tensor]) -> Energy:
    """x (n, ..) -> −ELBO(x) (n)"""
    return lambda x: -elbo(x)


def residual_score(rebuild: Callable[[Tensor], Tensor], sigma: float) -> Callable[[Tensor], Tensor]:
    """(rebuild(x) − x)/σ²: the score that a denoising autoencoder has learned."""
    return lambda x: (rebuild(x) - x) / sigma**2
