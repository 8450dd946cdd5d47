"""Worked examples of samplers, guidance, SDEs and the probability flow."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from descend.catalog.examples import Compute, Inputs, real
from descend.ops.diffusion.guidance import classifier_gradient, combine, combine_as_in_the_paper, guide_score
from descend.ops.diffusion.kernels import add_noise, posterior, posterior_mean_from_noise, reverse_variance
from descend.ops.diffusion.prediction import estimate
from descend.ops.diffusion.schedule import NoiseSchedule
from descend.ops.diffusion.sde import VE
from descend.sampling.diffusion.flow import ProbabilityFlow
from descend.sampling.diffusion.implicit import step_ddim
from descend.sampling.diffusion.stochastic import euler_maruyama, reverse_times
from descend.theory.diffusion import SamplingCost, chain_variance, guided_moments

LINEAR = NoiseSchedule()
ONE, ZERO = real(1.0), real(0.0)
DATA = 1.5  # deviation of the Gaussian data


def at(t: int) -> tuple[float, float]:
    """ᾱ_t and ᾱ_{t−1} for the books' t."""
    return LINEAR.abar()[t - 1].item(), LINEAR.abar_before()[t - 1].item()


def share_removed(i: Inputs) -> Inputs:
    """The factor of ε in the mean of a step, undone by √α."""
    shares = []
    for t in i["t"]:
        abar, before = at(t)
        shares.append(-posterior_mean_from_noise(ZERO, ONE, abar, before) * (abar / before) ** 0.5)
    abar, before = at(1)
    x0, eps = real(0.7), real(-1.3)
    back = posterior_mean_from_noise(add_noise(x0, eps, abar), eps, abar, before)
    return {"fraction": shares, "t1_recovers_x0": bool((back - x0).abs() < 1e-12)}


def cost(i: Inputs) -> Inputs:
    found = SamplingCost(i["images"], 3600 * i["hours"], i["T"], i["gan_seconds_upper"])
    return {
        "seconds_per_image": found.seconds_per_image,
        "network_evaluations": found.evaluations,
        "evaluations_per_second": found.evaluations_per_second,
        "slowdown_at_least": found.slowdown,
    }


def ddpm_mean(i: Inputs) -> Inputs:
    abar, before = at(i["t"])
    x0, eps = real(i["x0"]), real(i["eps"])
    x = add_noise(x0, eps, abar)
    return {
        "x_t": x,
        "mean": posterior_mean_from_noise(x, eps, abar, before),
        "posterior_mean": posterior(x0, x, abar, before).mean,
        "beta_t": reverse_variance(abar, before, "beta"),
        "posterior_variance": reverse_variance(abar, before, "posterior"),
    }


def sampler_variance(i: Inputs) -> Inputs:
    """The factor of x in the mean of a step with ε = √(1 − ᾱ) x. (Noise also in the last step, as printed.)"""

    def final(variance: str) -> float:
        steps = []
        for t in range(i["T"], 0, -1):
            abar, before = at(t)
            a = posterior_mean_from_noise(ONE, (1 - abar) ** 0.5 * ONE, abar, before)
            steps.append((float(a), float(reverse_variance(abar, before, variance))))
        return chain_variance(1.0, steps)

    return {"final_variance_beta": final("beta"), "final_variance_posterior": final("posterior")}


def ddim_step(i: Inputs) -> Inputs:
    abar, before = at(i["t"])
    x0, eps = real(i["x0"]), real(i["eps"])
    seen = estimate("eps", eps, add_noise(x0, eps, abar), abar)
    return {
        "x_prev": step_ddim(seen.x0, seen.eps, before),
        "marginal_form": add_noise(x0, eps, before),
        "step_ratio": 1000 / 50,
    }


def classify(x: Tensor, t: Tensor) -> Tensor:
    """p(component at +1 | x) = σ(2x) for ½ N(−1, 1) + ½ N(1, 1)."""
    return torch.stack([torch.zeros_like(x[:, 0]), 2 * x[:, 0]], 1)


def log_p(x: Tensor) -> Tensor:
    parts = torch.stack([-0.5 * (x - m).square() for m in (-1.0, 1.0)])
    return parts.logsumexp(0) - math.log(2 * math.sqrt(2 * math.pi))


def gamma_one(i: Inputs) -> Inputs:
    x = real([[i["x"]]]).requires_grad_()
    score = torch.autograd.grad(log_p(x).sum(), x)[0]
    gradient = classifier_gradient(classify, x, torch.zeros(1), torch.ones(1, dtype=torch.long))
    return {
        "sum_of_scores": guide_score(score, gradient, 1.0)[0, 0],
        "score_of_p_x_given_y": -(x[0, 0] - 1),
        "score_unconditional": guide_score(score, gradient, 0.0)[0, 0],
    }


def sharpening(i: Inputs) -> Inputs:
    x = torch.linspace(-12, 12, 200_001, dtype=torch.float64)
    rows = []
    for gamma in i["gamma"]:
        found = guided_moments(x, log_p(x), torch.nn.functional.logsigmoid(2 * x), gamma)
        rows.append([gamma, found.mean, found.variance, found.alignment])
    return {"gamma_mean_var_alignment": rows}


def free_combination(i: Inputs) -> Inputs:
    u, c = real(i["eps_uncond"]), real(i["eps_cond"])
    found = {f"gamma_{g}": combine(u, c, g) for g in i["gamma"]}
    return {**found, "w_2": combine_as_in_the_paper(u, c, 2.0)}


def free_scale(i: Inputs) -> Inputs:
    u, c = real(i["eps_uncond"]), real(i["eps_cond"])
    return {
        "guided": [combine(u, c, w) for w in i["w"]],
        "paper_form_with_w_minus_1": [combine_as_in_the_paper(u, c, w - 1) for w in i["w"]],
    }


def exploding(i: Inputs) -> Inputs:
    """∫ g² over 0..1 by Simpson's rule, and the difference of the variances."""
    sde = VE(i["sigma_min"], i["sigma_max"])
    t = torch.linspace(0, 1, 10_001, dtype=torch.float64)
    g2 = sde.diffusion(t).square()
    integral = (g2[0] + g2[-1] + 4 * g2[1::2].sum() + 2 * g2[2:-1:2].sum()) / (3 * (len(t) - 1))
    return {"integral": integral, "difference": sde.marginal(t)[1][-1].square()}


def smoothed_score(sde: VE) -> object:
    """∇ log of N(0, DATA² + σ_t²)."""
    return lambda x, t: -x / (DATA**2 + sde.sigma(t).square()).reshape(-1, 1)


def reverse_sde(i: Inputs) -> Inputs:
    """Euler-Maruyama is linear in x and the noise: its factors give the variance without drawing any."""
    sde = VE(i["sigma_min"], i["sigma_max"])

    def final(steps: int) -> float:
        times = torch.tensor(reverse_times(steps), dtype=torch.float64)
        here, dt = times[:-1], times[1] - times[0]
        ones, score = torch.ones(steps, 1, dtype=torch.float64), smoothed_score(sde)
        drift = lambda x, _: sde.reverse_drift(x, here, score(x, here))  # type: ignore[operator]
        spread = lambda x, _: sde.diffusion(here)[:, None] * torch.ones_like(x)
        zero = torch.zeros_like(ones)
        keep = euler_maruyama(drift, spread, ones, 0.0, float(dt), zero)
        fresh = euler_maruyama(drift, spread, zero, 0.0, float(dt), abs(float(dt)) ** 0.5 * ones)
        pairs = zip(keep[:, 0].tolist(), fresh[:, 0].square().tolist(), strict=True)
        return chain_variance(DATA**2 + i["sigma_max"] ** 2, pairs)

    return {"variance": [final(n) for n in i["steps"]], "target": DATA**2 + i["sigma_min"] ** 2}


def flow(i: Inputs) -> Inputs:
    sde = VE(i["sigma_min"], i["sigma_max"])
    solver = ProbabilityFlow(sde, smoothed_score(sde), rtol=1e-10, atol=1e-12)  # type: ignore[arg-type]
    x = real([[i["x(0)"]]])
    z, change = solver.encode_with_change(x)
    first, last = (DATA**2 + s**2 for s in (i["sigma_min"], i["sigma_max"]))

    def log_normal(y: Tensor, variance: float) -> Tensor:
        return -0.5 * (y.square() / variance + math.log(2 * math.pi * variance))

    return {
        "x1_runge_kutta": z[0, 0],
        "x1_closed_form": x[0, 0] * math.sqrt(last / first),
        "loglik_by_flow": log_normal(z[0, 0], last) + change[0],
        "loglik_exact": log_normal(x[0, 0], first),
    }


EXAMPLES: dict[str, Compute] = {
    "DLN-Sampling-fraction": share_removed,
    "DLN-Sampling-cost": cost,
    "DLN-Guidance-gamma1": gamma_one,
    "DLN-Guidance-sharpening": sharpening,
    "DLN-CFG-combination": free_combination,
    "DLN-VESDE-variance": exploding,
    "DLN-ReverseSDE-gaussian": reverse_sde,
    "DLN-PFODE-gaussian": flow,
    "S940-11.2-ddpm-mean": ddpm_mean,
    "S940-11.2-sampler-variance-gaussian": sampler_variance,
    "S940-11.3-ddim-step": ddim_step,
    "S940-11.4-cfg": free_scale,
}

SET_ASIDE: dict[str, str] = {}
