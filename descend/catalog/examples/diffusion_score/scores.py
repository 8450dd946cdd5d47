"""Worked examples: the score function and denoising score matching."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from descend.catalog.examples import Compute, Inputs, real
from descend.data.toys.mixture import Mixture
from descend.losses.score_matching import (
    denoising_by_noise,
    denoising_score_matching,
    explicit_score_matching,
    level_weights,
)
from descend.ops.energy.score import log_smoothed, log_smoothing, score_to_noise, smoothed_score
from descend.ops.math.calculus import numerical_gradient


def mixture_score(i: Inputs) -> Inputs:
    mixture = Mixture(real(i["w"]), real(i["mu"])[:, None], real(i["var"]).sqrt())
    x = real(i["x"])[:, None]

    def differences(constant: float) -> list[float]:
        log_p = lambda at: mixture.log_prob(at[None])[0] + math.log(constant)
        return [round(float(numerical_gradient(log_p, point)[0]), 7) + 0.0 for point in x]

    return {
        "score": mixture.score(x)[:, 0],
        "finite_difference": differences(1.0),
        "finite_difference_unnormalised": differences(7.0),
    }


def sigma_factor(i: Inputs) -> Inputs:
    """‖s + ε/σ‖², without the ½ of the loss."""
    sigma, s, eps = i["sigma"], real([[i["s_theta"]]]), real([[i["eps"]]])
    tilde = score_to_noise(s, sigma)
    square = real([sigma**2])
    return {
        "left_side": 2 * denoising_score_matching(s, eps, sigma)[0],
        "with_1_over_sigma": 2 * denoising_by_noise(tilde, eps, 1 / sigma)[0],
        "with_1_over_sigma2": 2 * denoising_by_noise(tilde, eps, 1 / sigma**2)[0],
        "weight_lambda_sigma2_printed": (square / sigma)[0],
        "weight_lambda_sigma2_right": level_weights(real([sigma]), square)[0],
    }


def log_normaliser(i: Inputs) -> Inputs:
    at_mode = [log_smoothing(real([[0.0] * d]), real([[0.0] * d]), i["sigma"])[0] for d in i["D"]]
    return {"right": [float(v) for v in at_mode], "printed": -math.log(2 * math.pi * i["sigma"] ** 2)}


def denoising_against_explicit(i: Inputs) -> Inputs:
    """Both losses as integrals on a fine grid, for the models s(x) = −k x + 0.1 k."""
    data, sigma = real(i["data"])[:, None], i["sigma"]
    line = torch.linspace(-12, 13, 25001, dtype=torch.float64)[:, None]
    density = log_smoothed(line, data, sigma).exp()

    def model(k: float) -> Tensor:
        return -k * line + 0.1 * k

    def explicit(k: float) -> float:
        return float(torch.trapezoid(density * explicit_score_matching(model(k), smoothed_score(line, data, sigma)),
                                     line[:, 0]))  # fmt: skip

    def denoising(k: float) -> float:
        parts = []
        for point in data:
            noise = (line - point) / sigma
            weight = log_smoothing(line, point, sigma).exp()
            parts.append(torch.trapezoid(weight * denoising_score_matching(model(k), noise, sigma), line[:, 0]))
        return float(torch.stack(parts).mean())

    ks = (0.3, 0.9)
    found = {"explicit": [explicit(k) for k in ks], "denoising": [denoising(k) for k in ks]}
    difference = [d - e for d, e in zip(found["denoising"], found["explicit"], strict=True)]
    return {**found, "difference": difference}


EXAMPLES: dict[str, Compute] = {
    "DLN-Score-gmm": mixture_score,
    "DLN-DSM-sigma-factor": sigma_factor,
    "DLN-DSM-log-normaliser": log_normaliser,
    "DLN-DSM-vs-ESM": denoising_against_explicit,
}

SET_ASIDE: dict[str, str] = {}
