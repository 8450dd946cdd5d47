"""The loss of a variational autoencoder, from an encoder's μ, log σ² (b, k) and what its decoder says of x (b, ..).

    ELBO    = E_q(z|x)[log p(x|z)] − KL(q(z|x) ‖ N(0, I))                        maximised; one value for each example
    KL      = −½ Σ_k (1 + log σ_k² − μ_k² − σ_k²)                                q = N(μ, diag σ²)
    Gaussian decoder    −log p(x|z) = ‖x − f(z)‖² / 2s² + (D/2) log 2πs²         s² fixed; D pixels
    Bernoulli decoder   −log p(x|z) = −Σ_d x_d log f_d + (1 − x_d) log(1 − f_d)  f = σ(logits)
    L       = Σ_i −log p(x_i|z_i) + β KL_i         β = 1: minus the ELBO; KL off and s² = 1: the autoencoder's ½ ‖·‖²

DLN sums over the examples, practice takes their mean: `vae_loss(.., reduction)` offers both, and one value for each.
Errata: DLN's normaliser has exponent 1/2 for D-dimensional x; right is D/2, which changes no optimum for a fixed s² but
every reported likelihood (`gaussian_nll` has it, `gaussian_error` leaves it out). DLN's overview figure prints
‖x − x̂‖² − KL; the sign must be +. S940 prints σ²I for q; per-dimension σ_j are meant. DLN advises a larger β for poor
reconstructions: with β on the KL it is the other way round (`descend.theory.linear_vae`).

Systems: vae-loss, vae, beta-vae
"""

from __future__ import annotations

import math
from typing import Literal

from torch import Tensor
from torch.nn.functional import softplus

from descend.losses.checks import same_shape, shares
from descend.losses.reconstruction import squared_error
from descend.ops.latent import gaussian_kl

Reduction = Literal["none", "mean", "sum"]


def gaussian_error(x: Tensor, mean: Tensor, variance: float = 1.0) -> Tensor:
    """‖x − f‖² / 2s²: the Gaussian decoder's loss without its constant: (b, ..) -> (b)"""
    return squared_error(x, mean) / (2 * positive(variance))


def gaussian_constant(dimensions: int, variance: float) -> float:
    """(D/2) log 2πs²: what normalises a D-dimensional Gaussian."""
    return dimensions / 2 * math.log(2 * math.pi * positive(variance))


def gaussian_nll(x: Tensor, mean: Tensor, variance: float = 1.0) -> Tensor:
    """−log N(x; f, s² I): (b, ..) -> (b)"""
    return gaussian_error(x, mean, variance) + gaussian_constant(x[0].numel(), variance)


def bernoulli_nll(x: Tensor, logits: Tensor) -> Tensor:
    """−Σ_d log p(x_d): pixels x in 0..1 and logits (b, ..) -> (b). Finite for logits of ±1e4."""
    same_shape(x, logits, "pixels and logits")
    shares(x.detach(), "a Bernoulli decoder needs pixels in 0..1 (scale them, or take a Gaussian decoder): pixel")
    return (softplus(logits) - x * logits).flatten(1).sum(1)


def vae_loss(
    x: Tensor,
    x_hat: Tensor,
    mu: Tensor,
    log_var: Tensor,
    variance: float = 1.0,
    beta: float = 1.0,
    reduction: Reduction = "mean",
) -> Tensor:
    """‖x − x̂‖² / 2s² + β KL, without constants: a value for each example, their mean, or DLN's sum."""
    each = gaussian_error(x, x_hat, variance) + beta * gaussian_kl(mu, log_var)
    return reduce(each, reduction)


def reduce(each: Tensor, reduction: Reduction) -> Tensor:
    """One value for each example, their mean, or their sum."""
    if reduction == "none":
        return each
    return each.mean() if reduction == "mean" else each.sum()


def positive(variance: float) -> float:
    if not variance > 0:
        raise ValueError(f"variance {variance}: above 0")
    return variance


def importance_bound(log_weights: Tensor, dim: int = -1) -> Tensor:
    """log (1/K) Σ_k w_k, log w_k = log p(x, z_k) − log q(z_k | x): the importance-weighted bound (IWAE) of log p(x).

    K = 1 is the ELBO; it rises with K and tends to log p(x) (.., K) -> (..).
    """
    return log_weights.logsumexp(dim) - math.log(log_weights.shape[dim])
