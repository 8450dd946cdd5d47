"""Worked examples of the family vae-latent."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from descend.catalog.examples import Compute, Inputs, real
from descend.losses.variational import gaussian_constant
from descend.ops.latent import gaussian_kl, pathwise_gradients, standard_normal_log_prob
from descend.theory.linear_vae import linear_optimum, reconstruction_variance


def loss_sign(i: Inputs) -> Inputs:
    kl = gaussian_kl(real([i["mu"]]), real([i["sigma2"]]).log())
    error = i["reconstruction"]
    return {"first_expression": error - kl, "second_expression": error + kl, "KL": kl}


def mc_variance(i: Inputs) -> Inputs:
    # p(x|z) = N(0.9 z, 0.4), q = N(0.6, 0.35), x = 1.3: the example gives them as a text
    return {"variance": [reconstruction_variance(1.3, 0.9, 0.4, 0.6, 0.35, samples) for samples in i["L"]]}


def closed_form(i: Inputs) -> Inputs:
    mu, var = real(i["mu"]), real(i["sigma2"])
    return {
        "closed_form": gaussian_kl(mu, var.log()),
        "quadrature": sum(integrate_kl(m, v) for m, v in zip(mu, var, strict=True)),
        "at_prior": gaussian_kl(torch.zeros_like(mu), torch.zeros_like(mu)),
    }


def integrate_kl(mu: Tensor, var: Tensor) -> Tensor:
    """∫ q (log q − log p) on a line."""
    z = torch.linspace(-20, 20, 40_001, dtype=torch.float64)
    log_q = standard_normal_log_prob(((z - mu) / var.sqrt())[:, None]) - var.log() / 2
    return torch.trapezoid(log_q.exp() * (log_q - standard_normal_log_prob(z[:, None])), z)


def normaliser(i: Inputs) -> Inputs:
    d, s2 = i["D"], i["sigma2"]
    return {
        "integral_of_printed_density": math.exp(gaussian_constant(d, s2) - gaussian_constant(1, s2)),
        "right_constant_log": -gaussian_constant(d, s2),
        "printed_constant_log": -gaussian_constant(1, s2),
    }


def beta_direction(i: Inputs) -> Inputs:
    rows = []
    for beta in i["betas"]:
        found = linear_optimum(real([i["data_variance"]]), i["sigma2"], beta)
        rows.append([beta, float(found.error), float(found.kl)])
    return {"beta_reconstruction_error_KL": rows}


def square_gradients(mu: float, sigma: float) -> tuple[Tensor, Tensor]:
    """E of the pathwise gradients of z², by Gauss-Hermite quadrature."""
    nodes, weights = (torch.from_numpy(v) for v in np.polynomial.hermite_e.hermegauss(8))
    found = pathwise_gradients(lambda z: z.square().sum(-1), real([mu]), real([sigma]), nodes[:, None])
    dmu, dsigma = ((g[:, 0] * weights).sum() / weights.sum() for g in found)
    return dmu, dsigma


def dln_gradients(i: Inputs) -> Inputs:
    dmu, dsigma = square_gradients(i["mu"], i["sigma"])
    exact = exact_gradients(i["mu"], i["sigma"])
    return {"dmu": dmu, "dsigma": dsigma, "exact_dmu": exact[0], "exact_dsigma": exact[1]}


def s940_gradients(i: Inputs) -> Inputs:
    dmu, dsigma = square_gradients(i["mu"], i["sigma"])
    return {"dmu": dmu, "dsigma": dsigma, "exact": exact_gradients(i["mu"], i["sigma"])}


def exact_gradients(mu: float, sigma: float) -> list[float]:
    """Of E z² = μ² + σ²."""
    return [2 * mu, 2 * sigma]


def diagonal_kl(i: Inputs) -> Inputs:
    mu, sigma = real(i["mu"]), real(i["sigma"])
    q = torch.distributions.Normal(mu, sigma)
    theirs = torch.distributions.kl_divergence(q, torch.distributions.Normal(0.0, 1.0)).sum()
    return {"kl": gaussian_kl(mu, 2 * sigma.log()), "torch": theirs}


EXAMPLES: dict[str, Compute] = {
    "DLN-VAE-figure-loss-sign": loss_sign,
    "DLN-VAE-mc-variance": mc_variance,
    "DLN-VAE-kl-closed-form": closed_form,
    "DLN-VAE-gaussian-normaliser": normaliser,
    "DLN-BetaVAE-direction": beta_direction,
    "DLN-VAE-reparametrization": dln_gradients,
    "S940-7.4-reparameterization": s940_gradients,
    "S940-7.3-gaussian-kl": diagonal_kl,
}

SET_ASIDE: dict[str, str] = {}
