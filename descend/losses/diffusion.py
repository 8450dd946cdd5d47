"""Losses of a diffusion model: the weighted noise-prediction loss, and the variational bound term by term.

    L = E_{x_0, ε, t} [ γ_t ‖ε − ε_θ(√ᾱ_t x_0 + √(1 − ᾱ_t) ε, t)‖² ]
        simple    γ_t = 1
        elbo      γ_t = β_t² / (2 σ_t² α_t (1 − ᾱ_t)):  then γ_t ‖..‖² = ‖μ̃_t − μ_θ‖² / 2σ_t², the θ-part of KL_t
        callable  any weights of the schedule, such as `min_snr`

    −log p_θ(x_0) ≤ E_q[−log p_θ(x_{0:T}) / q(x_{1:T} | x_0)] = L_T + Σ_{t>1} L_{t−1} + L_0
        L_T = KL(q(x_T | x_0) ‖ p(x_T)),   L_{t−1} = KL(q(x_{t−1} | x_t, x_0) ‖ p_θ(x_{t−1} | x_t))
        L_0 = −log p_θ(x_0 | x_1)

Errata: the bound is an UPPER bound on −log p (S940-DLD.140 calls it lower; its negative bounds log p from below). KL_t
equals ‖μ̃ − μ_θ‖² / 2σ_t² only up to a constant without θ, 0 where σ_t² = β̃_t (DLN-C.129 prints equality).
A term is in nats, one value for each example. Times count from 0, so index 0 is the books' t = 1.

Systems: noise-prediction-loss, diffusion-elbo, prediction-parametrisation
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from descend.ops.diffusion.kernels import Gaussian, Number, add_noise, noise_step, posterior, reverse_variance
from descend.ops.diffusion.prediction import Predicts, estimate
from descend.ops.diffusion.schedule import NoiseSchedule, signal_to_noise, spread

Weights = Literal["simple", "elbo"] | Callable[[NoiseSchedule], Tensor]
Predict = Callable[[Tensor, Tensor], Tensor]
Variance = Literal["beta", "posterior"]


def noise_prediction_loss(predicted: Tensor, target: Tensor, weight: Number = 1.0) -> Tensor:
    """γ ‖target − predicted‖², one value for each example; γ one number or (b)."""
    return weight * (target - predicted).square().flatten(1).sum(1)


def weigh(weights: Weights, noise: NoiseSchedule, predicts: Predicts = "eps", variance: Variance = "beta") -> Tensor:
    """γ (T) of the squared error of what the network predicts."""
    if callable(weights):
        return weights(noise)
    if weights == "simple":
        return torch.ones(noise.steps, dtype=torch.float64)
    return elbo_weights(noise, variance) * noise_error(predicts, noise.abar())


def elbo_weights(noise: NoiseSchedule, variance: Variance = "beta") -> Tensor:
    """β² / (2 σ² α (1 − ᾱ)) (T). With σ² = β̃ the first is taken with β̃ of the second time, since β̃_1 = 0."""
    beta, abar = noise.betas(), noise.abar()
    sigma2 = step_variances(noise, variance)
    return beta.square() / (2 * sigma2 * (1 - beta) * (1 - abar))


def step_variances(noise: NoiseSchedule, variance: Variance) -> Tensor:
    """σ_t² (T) of the reverse steps; β̃_1 = 0 is replaced by β̃_2."""
    found = reverse_variance(noise.abar(), noise.abar_before(), variance)
    assert isinstance(found, Tensor)
    return torch.cat([found[1:2], found[1:]]) if variance == "posterior" and len(found) > 1 else found


def noise_error(predicts: Predicts, abar: Tensor) -> Tensor:
    """‖ε − ε̂‖² for each unit of ‖target − predicted‖²: 1, ᾱ / (1 − ᾱ) for x_0, ᾱ for v."""
    return {"eps": torch.ones_like(abar), "x0": signal_to_noise(abar), "v": abar}[predicts]


def min_snr(largest: float = 5.0) -> Callable[[NoiseSchedule], Tensor]:
    """Weights min(SNR, largest) / SNR of an ε loss: large t count in full, small t less (Hang et al. 2023)."""

    def weights(noise: NoiseSchedule) -> Tensor:
        snr = signal_to_noise(noise.abar())
        return snr.clamp(max=largest) / snr

    return weights


def kl_of_gaussians(q: Gaussian, p: Gaussian) -> Tensor:
    """KL(q ‖ p) of N(m, v I): ½ Σ (v/w − 1 − log(v/w) + (m − n)² / w), one value for each example."""
    ratio = torch.as_tensor(q.variance / p.variance, dtype=q.mean.dtype, device=q.mean.device)
    each = ratio - 1 - ratio.log() + (q.mean - p.mean).square() / p.variance
    return 0.5 * each.flatten(1).sum(1)


def squared_distance_of_means(q: Gaussian, p: Gaussian) -> Tensor:
    """‖m − n‖² / 2w: the part of the KL that depends on the network."""
    return 0.5 * ((q.mean - p.mean).square() / p.variance).flatten(1).sum(1)


def prior_kl(x0: Tensor, noise: NoiseSchedule) -> Tensor:
    """L_T = KL(q(x_T | x_0) ‖ N(0, I)): nothing to learn; near 0 where the schedule ends in noise."""
    abar = noise.abar()[-1].item()
    return kl_of_gaussians(Gaussian(abar**0.5 * x0, 1 - abar), Gaussian(torch.zeros_like(x0), 1.0))


def log_normal(x: Tensor, g: Gaussian) -> Tensor:
    """log N(x; m, v I), one value for each example."""
    variance = torch.as_tensor(g.variance, dtype=x.dtype, device=x.device)
    each = (x - g.mean).square() / variance + (2 * math.pi * variance).log()
    return -0.5 * each.flatten(1).sum(1)


def log_pixels(x: Tensor, g: Gaussian, values: int = 256) -> Tensor:
    """log of the mass that N(m, v I) has in the bins of pixels x in −1..1 of so many values; outer bins are open."""
    std, half = torch.as_tensor(g.variance, dtype=x.dtype, device=x.device).sqrt(), 1 / (values - 1)
    normal = torch.special.ndtr
    upper = torch.where(x > 1 - half, 1.0, normal((x + half - g.mean) / std))
    lower = torch.where(x < -1 + half, 0.0, normal((x - half - g.mean) / std))
    return (upper - lower).clamp(min=1e-12).log().flatten(1).sum(1)


@dataclass(frozen=True)
class Bound:
    """The terms of −ELBO, in nats: an upper bound on −log p."""

    prior: Tensor
    """L_T (b)"""
    steps: Tensor
    """L_{t−1} (T − 1, b), for the books' t = 2 .. T"""
    reconstruction: Tensor
    """L_0 = −log p_θ(x_0 | x_1) (b)"""

    @property
    def total(self) -> Tensor:
        return self.prior + self.steps.sum(0) + self.reconstruction

    def bits_per_dimension(self, numbers: int) -> Tensor:
        """Of examples with so many numbers each."""
        return bits_per_dimension(self.total, numbers)


def bits_per_dimension(nats: Tensor, numbers: int) -> Tensor:
    """nats / (numbers · log 2)"""
    return nats / (numbers * math.log(2))


class VariationalBound:
    """−ELBO of a network predict(x, t) on a schedule. `pixels` > 0: x_0 are pixels in −1..1 of so many values."""

    def __init__(
        self,
        predict: Predict,
        noise: NoiseSchedule,
        predicts: Predicts = "eps",
        variance: Variance = "beta",
        pixels: int = 0,
    ):
        self.predict, self.noise, self.predicts, self.pixels = predict, noise, predicts, pixels
        self.sigma2 = step_variances(noise, variance)

    def reverse(self, x: Tensor, t: int) -> Gaussian:
        """p_θ(x_{t−1} | x_t)"""
        abar, before = self.noise.abar()[t].item(), self.noise.abar_before()[t].item()
        out = self.predict(x, torch.full((len(x),), t, device=x.device))
        x0 = estimate(self.predicts, out, x, abar).x0
        return Gaussian(posterior(x0, x, abar, before).mean, self.sigma2[t].item())

    def term(self, x0: Tensor, t: int, eps: Tensor) -> Tensor:
        """L_{t−1} for t > 0, L_0 for t = 0 (the books' 1), at one draw of x_t."""
        abar, before = self.noise.abar()[t].item(), self.noise.abar_before()[t].item()
        x = add_noise(x0, eps, abar)
        p = self.reverse(x, t)
        if t:
            return kl_of_gaussians(posterior(x0, x, abar, before), p)
        return -(log_pixels(x0, p, self.pixels) if self.pixels else log_normal(x0, p))

    def __call__(self, x0: Tensor, draw: Callable[[], Tensor]) -> Bound:
        """All terms, each at one draw of fresh noise in the shape of x_0."""
        found = [self.term(x0, t, draw()) for t in range(self.noise.steps)]
        steps = torch.stack(found[1:]) if len(found) > 1 else x0.new_zeros(0, len(x0))
        return Bound(prior_kl(x0, self.noise), steps, found[0])

    def of_path(self, x0: Tensor, draw: Callable[[], Tensor]) -> Tensor:
        """The other form: −log p_θ(x_{0:T}) / q(x_{1:T} | x_0) on one path of the chain."""
        path = [x0]
        for beta in self.noise.betas().tolist():
            path.append(noise_step(path[-1], draw(), beta))
        total = -log_normal(path[-1], Gaussian(torch.zeros_like(x0), 1.0))
        for t, beta in enumerate(self.noise.betas().tolist()):
            before, after = path[t], path[t + 1]
            p = self.reverse(after, t)
            backward = log_pixels(before, p, self.pixels) if self.pixels and not t else log_normal(before, p)
            total = total - backward + log_normal(after, Gaussian((1 - beta) ** 0.5 * before, beta))
        return total


def score_matching_loss(score: Tensor, eps: Tensor, std: Tensor) -> Tensor:
    """λ_t ‖s_θ(x_t, t) + ε / s_t‖² in continuous time, with λ_t = s_t², the inverse of E‖∇ log q(x_t | x_0)‖² for
    each number; s_t the deviation of the noise. One value for each example.

    Systems: score-sde
    """
    return (spread(std, eps) * score + eps).square().flatten(1).sum(1)
