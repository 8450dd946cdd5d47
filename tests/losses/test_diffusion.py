"""Losses of diffusion models: weights, the exact minimum, KL terms, and the bound on a model that is known in full."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from descend.losses.diffusion import (
    VariationalBound,
    bits_per_dimension,
    elbo_weights,
    kl_of_gaussians,
    log_normal,
    log_pixels,
    min_snr,
    noise_prediction_loss,
    prior_kl,
    score_matching_loss,
    squared_distance_of_means,
    weigh,
)
from descend.losses.score_matching import denoising_score_matching
from descend.ops.diffusion.kernels import Gaussian, add_noise, posterior, posterior_mean_from_noise
from descend.ops.diffusion.prediction import Predicts, estimate, score_from_eps, target_of
from descend.ops.diffusion.schedule import NoiseSchedule, linear_betas, signal_to_noise
from tests.close import close

SHORT = NoiseSchedule("linear", 12, 0.02, 0.4)


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.system("noise-prediction-loss")
@pytest.mark.system("noise-prediction-loss", "weights")
@pytest.mark.system("diffusion-elbo")
def test_the_elbo_weight_makes_it_the_kl_terms() -> None:
    """γ ‖ε − ε_θ‖² = ‖μ̃ − μ_θ‖² / 2σ² at every t, with β and with β̃; simple is 1; a callable is taken as it is."""
    noise = NoiseSchedule()
    assert weigh("simple", noise).eq(1).all()
    for variance in ("beta", "posterior"):
        weights = weigh("elbo", noise, variance=variance)
        for t in (1, 399, 999):
            abar, before = noise.abar()[t].item(), noise.abar_before()[t].item()
            x, eps, guess = normal(4, 3), normal(4, 3, seed=1), normal(4, 3, seed=2)
            sigma2 = 1 - abar / before if variance == "beta" else posterior(x, x, abar, before).variance
            q, p = (Gaussian(posterior_mean_from_noise(x, e, abar, before), sigma2) for e in (eps, guess))
            close(noise_prediction_loss(guess, eps, weights[t]), squared_distance_of_means(q, p))
    snr = signal_to_noise(noise.abar())
    close(weigh(min_snr(5.0), noise)[:3], 5 / snr[:3])
    assert weigh(lambda n: n.betas(), noise).equal(noise.betas())


@pytest.mark.system("noise-prediction-loss", "weights")
@pytest.mark.system("prediction-parametrisation", "both-ways")
@pytest.mark.parametrize("predicts", ["eps", "x0", "v"])
def test_the_elbo_weight_is_the_same_for_every_prediction(predicts: Predicts) -> None:
    noise, t = NoiseSchedule(), 300
    abar = noise.abar()[t].item()
    x0, eps, guess = normal(4, 3), normal(4, 3, seed=1), normal(4, 3, seed=2)
    x = add_noise(x0, eps, abar)
    seen = estimate("eps", guess, x, abar)
    target, said = (target_of(predicts, *pair, abar) for pair in ((x0, eps), seen))
    ours = noise_prediction_loss(said, target, weigh("elbo", noise, predicts)[t])
    close(ours, noise_prediction_loss(guess, eps, elbo_weights(noise)[t]))


@pytest.mark.system("noise-prediction-loss", "minimum")
def test_the_minimum_for_standard_normal_data() -> None:
    """ε* = √(1 − ᾱ) x_t has the loss ᾱ_t for each number, and moving away from it costs; a perfect guess costs 0."""
    noise, n = NoiseSchedule(), 400_000
    x0, eps = normal(n, 1), normal(n, 1, seed=1)
    for t in (50, 300, 800):
        abar = noise.abar()[t].item()
        x = add_noise(x0, eps, abar)
        best = [noise_prediction_loss(f * (1 - abar) ** 0.5 * x, eps).mean() for f in (1.0, 0.9, 1.1)]
        assert abs(best[0] - abar) < 0.005
        assert best[0] < min(best[1:])
    assert noise_prediction_loss(eps, eps).eq(0).all()


@pytest.mark.system("noise-prediction-loss", "score")
def test_it_is_denoising_score_matching() -> None:
    """With s = −ε̂ / √(1 − ᾱ): (1 − ᾱ) ‖s + ε / √(1 − ᾱ)‖² = ‖ε − ε̂‖², so λ = σ² is the simple loss."""
    abar, eps, guess = 0.3, normal(5, 2), normal(5, 2, seed=1)
    score, sigma = score_from_eps(guess, abar), (1 - abar) ** 0.5
    close(2 * sigma**2 * denoising_score_matching(score, eps, sigma), noise_prediction_loss(guess, eps))
    close(score_matching_loss(score, eps, torch.full((5,), sigma)), noise_prediction_loss(guess, eps))


@pytest.mark.system("diffusion-elbo", "kl-constant")
def test_kl_terms_by_torch_and_their_constant() -> None:
    abar, before = 0.2, 0.25
    x0, x, mean = normal(4, 3), normal(4, 3, seed=1), normal(4, 3, seed=2)
    q = posterior(x0, x, abar, before)
    for variance in (1 - abar / before, q.variance):
        p = Gaussian(mean, variance)
        theirs = torch.distributions.kl_divergence(
            *(torch.distributions.Normal(g.mean, float(g.variance) ** 0.5) for g in (q, p))
        ).sum(1)
        close(kl_of_gaussians(q, p), theirs)
        ratio = float(q.variance) / float(variance)
        constant = 1.5 * (ratio - 1 - math.log(ratio))
        assert (constant < 1e-12) == (variance == q.variance)
        close(theirs - squared_distance_of_means(q, p) + 1, torch.full((4,), 1 + constant, dtype=torch.float64))


def linear_model(scale: float) -> Callable[..., Tensor]:
    """The exact predictor of data N(0, scale²): ε = √(1 − ᾱ) x / (ᾱ scale² + 1 − ᾱ)."""

    def predict(x: Tensor, t: Tensor) -> Tensor:
        abar = SHORT.at(t, x)
        return (1 - abar).sqrt() * x / (abar * scale**2 + 1 - abar)

    return predict


def exact_log_prob(bound: VariationalBound, x0: Tensor) -> Tensor:
    """p_θ is a chain of linear Gaussians: x_0 is N(0, v)."""
    v = 1.0
    for t in reversed(range(SHORT.steps)):
        step = bound.reverse(torch.ones(1, 1, dtype=torch.float64), t)
        v = float(step.mean) ** 2 * v + float(step.variance)
    return log_normal(x0, Gaussian(torch.zeros_like(x0), v))


@pytest.mark.system("diffusion-elbo", "bound")
@pytest.mark.parametrize("scale", [0.5, 1.5])
def test_both_forms_agree_and_bound_from_above(scale: float) -> None:
    """One x_0, 200,000 draws: both are estimates of one number, which is above −log p_θ(x_0), not below it."""
    bound = VariationalBound(linear_model(scale), SHORT)
    x0 = torch.full((200_000, 1), 0.8, dtype=torch.float64)
    random = torch.Generator().manual_seed(0)
    draw = lambda: torch.randn(x0.shape, generator=random, dtype=torch.float64)
    terms, path = bound(x0, draw).total, bound.of_path(x0, draw)
    error = 5 * (terms.std() + path.std()) / len(x0) ** 0.5
    exact = -exact_log_prob(bound, x0[:1])[0]
    assert abs(terms.mean() - path.mean()) < error < 0.05
    assert path.mean() > exact + 5 * path.std() / len(x0) ** 0.5


@pytest.mark.system("diffusion-elbo", "terms")
def test_terms_and_bits() -> None:
    """Each term by hand, and its sum in bits."""
    bound = VariationalBound(linear_model(1.0), SHORT)
    x0, eps = normal(6, 3), normal(6, 3, seed=1)
    found = bound(x0, lambda: eps)
    assert found.steps.shape == (SHORT.steps - 1, 6)
    close(found.total, found.prior + found.steps.sum(0) + found.reconstruction)
    abar = SHORT.abar()[-1].item()
    by_hand = 0.5 * (abar * x0.square() - abar - math.log(1 - abar)).sum(1)
    close(found.prior, by_hand)
    close(prior_kl(x0, SHORT), by_hand)
    close(found.bits_per_dimension(3), found.total / 3 / math.log(2))
    close(bits_per_dimension(torch.tensor(math.log(256.0) * 10), 10), 8.0)


@pytest.mark.system("diffusion-elbo", "terms")
def test_the_exact_model_in_more_steps_has_a_tighter_bound() -> None:
    """Data N(0, ¼) and their exact predictor: the bound is above the entropy, in 50 steps by less than in 5."""
    gaps = []
    for steps, end in ((5, 0.7), (50, 0.15)):
        noise = NoiseSchedule("linear", steps, 1e-3, end)
        predict = lambda x, t, n=noise: (1 - n.at(t, x)).sqrt() * x / (1 - 0.75 * n.at(t, x))
        x, random = 0.5 * normal(20_000, 1), torch.Generator().manual_seed(2)
        path = VariationalBound(predict, noise).of_path(
            x, lambda: torch.randn(x.shape, generator=random, dtype=torch.float64)
        )
        gaps.append(float((path + log_normal(x, Gaussian(torch.zeros_like(x), 0.25))).mean()))
    assert gaps[0] > 2 * gaps[1] > 0.01


@pytest.mark.system("diffusion-elbo", "terms")
def test_pixels_of_256_values_share_all_the_mass() -> None:
    """Summed over all values of a pixel the mass is 1; a term with pixels is a probability, at least 0 nats."""
    values = (2 * torch.arange(256, dtype=torch.float64) / 255 - 1)[:, None]
    for mean, variance in ((0.2, 0.01), (-0.99, 0.3), (0.5, 1e-4)):
        g = Gaussian(torch.full_like(values, mean), variance)
        close(log_pixels(values, g).exp().sum(), torch.ones((), dtype=torch.float64))  # bins are at least 1e-12
    x0 = values[torch.tensor([3, 200, 255])]
    bound = VariationalBound(linear_model(1.0), SHORT, pixels=256)
    assert (bound(x0, lambda: torch.zeros_like(x0)).reconstruction >= 0).all()


@pytest.mark.system("diffusion-elbo", "two-means")
@pytest.mark.system("diffusion-elbo", "posterior")
def test_the_posterior_by_brute_force() -> None:
    """q(x_{t−1} | x_t, x_0) ∝ q(x_t | x_{t−1}) q(x_{t−1} | x_0) on a fine grid."""
    betas = linear_betas(3, 0.1, 0.4)
    abar = (1 - betas).cumprod(0)
    x0, xt = torch.tensor([[0.7]], dtype=torch.float64), torch.tensor([[-0.4]], dtype=torch.float64)
    x = torch.linspace(-8, 8, 80_001, dtype=torch.float64)[:, None]
    log_w = log_normal(xt.expand_as(x), Gaussian((1 - betas[2]).sqrt() * x, betas[2].item()))
    log_w = log_w + log_normal(x, Gaussian(abar[1].sqrt() * x0, 1 - abar[1].item()))
    w = log_w.softmax(0)[:, None]
    found = posterior(x0, xt, abar[2].item(), abar[1].item())
    close(found.mean[0, 0], (w * x).sum())
    close(torch.tensor(found.variance), (w * (x - found.mean).square()).sum())
    eps = (xt - abar[2].sqrt() * x0) / (1 - abar[2]).sqrt()
    close(posterior_mean_from_noise(xt, eps, abar[2].item(), abar[1].item()), found.mean)
