"""Worked examples of forward diffusion, its posterior, the bound and the losses."""

from __future__ import annotations

import torch
from torch import Tensor

from descend.catalog.examples import Compute, Inputs, real
from descend.losses.diffusion import (
    elbo_weights,
    kl_of_gaussians,
    noise_prediction_loss,
    squared_distance_of_means,
)
from descend.ops.diffusion.kernels import (
    Gaussian,
    add_noise,
    naive_jump,
    naive_step,
    noise_step,
    posterior,
    posterior_mean_from_noise,
)
from descend.ops.diffusion.prediction import eps_from_x0, estimate, v_of
from descend.ops.diffusion.schedule import NoiseSchedule
from descend.theory.diffusion import image_dimensions

LINEAR, COSINE = NoiseSchedule(), NoiseSchedule("cosine")
ONE, ZERO = real(1.0), real(0.0)


def at(t: int) -> tuple[float, float]:
    """ᾱ_t and ᾱ_{t−1} of the linear schedule for the books' t."""
    return LINEAR.abar()[t - 1].item(), LINEAR.abar_before()[t - 1].item()


def image_space(i: Inputs) -> Inputs:
    return {"dimensions": image_dimensions(i["height"], i["width"])}


def naive_variance(i: Inputs) -> Inputs:
    """Variances are squares of the factor of ε: independent noises add in variance."""
    beta, times = i["beta"], i["t"]
    step = naive_step(ZERO, ONE, beta).square()
    return {
        "variance_of_printed_x_t": [(t * beta) ** 2 for t in times],
        "variance_of_independent_beta_steps": [t * naive_step(ZERO, ONE, beta**2).square() for t in times],
        "variance_with_sqrt_beta_steps": [naive_jump(ZERO, ONE, beta, t).square() for t in times] if step else None,
    }


def after_all(variance: float) -> Tensor:
    """The variance after the whole chain, from the factors of x and ε in each step."""
    v = real(variance)
    for beta in LINEAR.betas():
        v = noise_step(ONE, ZERO, beta).square() * v + noise_step(ZERO, ONE, beta).square()
    return v


def preserving(i: Inputs) -> Inputs:
    mean = ONE
    for beta in LINEAR.betas():
        mean = noise_step(mean, ZERO, beta)
    return {"variance_after_T": after_all(1.0), "mean_factor_after_T": mean, "variance_from_a_point": after_all(0.0)}


def limit(i: Inputs) -> Inputs:
    last, abar = LINEAR.betas()[-1], LINEAR.abar()[-1]
    return {
        "sqrt_1_minus_beta_T": noise_step(ONE, ZERO, last),
        "sqrt_alphabar_T": add_noise(ONE, ZERO, abar),
        "beta_T": noise_step(ZERO, ONE, last).square(),
        "one_minus_alphabar_T": add_noise(ZERO, ONE, abar).square(),
    }


def two_steps(i: Inputs) -> Inputs:
    first, second = i["beta_1"], i["beta_2"]
    abar = (1 - first) * (1 - second)
    noise = noise_step(noise_step(ZERO, ONE, first), ZERO, second).square()
    return {
        "mean_factor": noise_step(noise_step(ONE, ZERO, first), ZERO, second),
        "first_noise_variance": noise,
        "sum_of_variances": noise + noise_step(ZERO, ONE, second).square(),
        "merged": add_noise(ZERO, ONE, abar).square(),
    }


def schedules(i: Inputs) -> Inputs:
    at_quarters = torch.tensor([250, 500, 750, 1000]) - 1
    return {"linear": LINEAR.abar()[at_quarters], "cosine": COSINE.abar()[at_quarters]}


def marginal(i: Inputs) -> Inputs:
    abar = LINEAR.abar()
    return {
        "alpha_bar": abar[torch.tensor([1, 250, 500, 750, 1000]) - 1],
        "signal_scale_T": add_noise(ONE, ZERO, abar[-1]),
        "var_by_recursion_T": after_all(0.0),
        "one_minus_alpha_bar_T": add_noise(ZERO, ONE, abar[-1]).square(),
    }


def bayes(i: Inputs) -> Inputs:
    """Precisions add: N(x_t; √α x, β) as a function of x, times N(x; √ᾱ' x_0, 1 − ᾱ')."""
    abar, before = at(i["t"])
    alpha = abar / before
    precision = alpha / (1 - alpha) + 1 / (1 - before)
    mean = (alpha**0.5 * i["xt"] / (1 - alpha) + before**0.5 * i["x0"] / (1 - before)) / precision
    found = posterior(real(i["x0"]), real(i["xt"]), abar, before)
    return {
        "bayes_variance": 1 / precision,
        "printed_variance": found.variance,
        "bayes_mean": mean,
        "printed_mean": found.mean,
    }


def eps_form(i: Inputs) -> Inputs:
    abar, before = at(i["t"])
    x0, xt = real(i["x0"]), real(i["xt"])
    eps = eps_from_x0(xt, x0, abar)
    return {
        "mean_x0_form": posterior(x0, xt, abar, before).mean,
        "mean_eps_form": posterior_mean_from_noise(xt, eps, abar, before),
        "eps": eps,
    }


def difference(mean: float, other: float, t: int) -> tuple[Tensor, Tensor]:
    """KL of posterior and reverse step with σ² = β, and its squared form."""
    abar, before = at(t)
    small = posterior(ZERO, ZERO, abar, before).variance
    q = Gaussian(real([[mean]]), small)
    p = Gaussian(real([[other]]), 1 - abar / before)
    return kl_of_gaussians(q, p)[0], squared_distance_of_means(q, p)[0]


def kl_constant(i: Inputs) -> Inputs:
    mean, t = i["mu_tilde"], i["t"]
    kl, squared = difference(mean, i["mu_theta"], t)
    other = difference(mean, i["mu_theta"] + 1.0, t)
    return {
        "KL": kl,
        "squared_term": squared,
        "difference": kl - squared,
        "difference_other_mu": other[0] - other[1],
        "closed_form_constant": difference(mean, mean, t)[0],
        "constant_at_t_2": difference(mean, mean, 2)[0],
    }


def loss_weight(i: Inputs) -> Inputs:
    t, weights = i["t"], elbo_weights(LINEAR, "beta")
    eps, guess = real([[i["eps"]]]), real([[i["eps_theta"]]])
    abar, before = at(t)
    x = add_noise(ZERO, eps, abar)
    q, p = (
        Gaussian(posterior_mean_from_noise(x, e, abar, before), 1 - abar / before) for e in (eps, guess)
    )  # both means at one x_t
    return {
        "weight": weights[t - 1],
        "weighted_eps_loss": noise_prediction_loss(guess, eps, weights[t - 1])[0],
        "mean_loss": squared_distance_of_means(q, p)[0],
        "weight_t1": weights[0],
        "weight_t1000": weights[-1],
    }


def v_objective(i: Inputs) -> Inputs:
    abar, x0, eps = i["alphabar"], real(i["x0"]), real(i["eps"])
    v = v_of(x0, eps, abar)
    back = estimate("v", v, add_noise(x0, eps, abar), abar)
    return {"v": v, "x0_back": back.x0, "eps_back": back.eps}


EXAMPLES: dict[str, Compute] = {
    "DLN-Diffusion-image-space": image_space,
    "DLN-Forward-naive-variance": naive_variance,
    "DLN-Forward-variance-preserving": preserving,
    "DLN-Forward-limit": limit,
    "DLN-Kernel-two-steps": two_steps,
    "DLN-Schedules-linear-cosine": schedules,
    "DLN-Posterior-bayes": bayes,
    "DLN-Posterior-eps-form": eps_form,
    "DLN-Posterior-KL-constant": kl_constant,
    "DLN-Loss-weight": loss_weight,
    "DLN-SD-v-objective": v_objective,
    "S940-11.1-marginal": marginal,
}

SET_ASIDE: dict[str, str] = {
    "DLN-Diffusion-T": "two statements of the text on T (1000, several thousand); no number follows from inputs",
    "S940-11.2-vlb-sign": "a statement in words; tests/losses/test_diffusion.py shows that the bound is an upper one",
    "DLN-Posterior-KL-constant:difference": "two nearly equal numbers of ten digits: three digits remain; "
    "closed_form_constant compares it in full",
    "DLN-Posterior-KL-constant:difference_other_mu": "three digits remain, as for difference",
}
