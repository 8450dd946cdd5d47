"""Forward diffusion: the chain against the jump, schedules, and what may be predicted."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from descend.errors import Mistake
from descend.ops.diffusion.kernels import add_noise, naive_jump, naive_step, noise_step, reverse_variance
from descend.ops.diffusion.plan import Plan
from descend.ops.diffusion.prediction import (
    eps_from_score,
    estimate,
    score_from_eps,
    target_of,
    v_of,
)
from descend.ops.diffusion.schedule import NoiseSchedule, signal_to_noise
from tests.close import close

SHAPES = ("linear", "scaled-linear", "cosine", "sigmoid")
N = 200_000


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.system("ddpm-forward")
@pytest.mark.system("ddpm-forward", "naive")
def test_naive_noise_has_the_variance_t_beta() -> None:
    """Erratum: √β ε in each step. With the printed β ε the variance after t steps would be t β², 50 times less."""
    beta, x = 0.02, torch.full((N,), 0.7, dtype=torch.float64)
    for t in range(1, 11):
        x = naive_step(x, normal(N, seed=t), beta)
        if t in (1, 2, 10):
            assert abs(x.var() / (t * beta) - 1) < 0.02
    assert abs(x.mean() - 0.7) < 0.01
    jump = naive_jump(torch.zeros(N, dtype=torch.float64), normal(N), beta, 10)
    assert abs(jump.var() / x.var() - 1) < 0.02


@pytest.mark.system("ddpm-forward", "chain")
@pytest.mark.system("ddpm-forward", "kernel")
@pytest.mark.system("ddpm-forward", "any-schedule")
@pytest.mark.parametrize("shape", SHAPES)
def test_the_chain_has_the_moments_of_the_jump(shape: Any) -> None:
    """x_0 = 2 for half, −1 for half: mean and variance of x_t by steps and at once, for every schedule."""
    noise = NoiseSchedule(shape, 20, 0.01, 0.3)
    x0 = torch.where(torch.arange(N) % 2 == 0, 2.0, -1.0).double()
    x = x0
    for t, beta in enumerate(noise.betas().tolist()):
        x = noise_step(x, normal(N, seed=t), beta)
        abar = noise.abar()[t].item()
        jump = add_noise(x0, normal(N, seed=100 + t), abar)
        for half in (slice(0, None, 2), slice(1, None, 2)):
            assert abs(x[half].mean() - jump[half].mean()) < 0.02
            assert abs(x[half].mean() - abar**0.5 * x0[half][0]) < 0.02
            assert abs(x[half].var() - (1 - abar)) < 0.02
            assert abs(jump[half].var() - (1 - abar)) < 0.02


@pytest.mark.system("ddpm-forward", "kernel")
def test_a_batch_of_different_times() -> None:
    noise, t = NoiseSchedule(), torch.tensor([0, 499, 999])
    x0, eps = normal(3, 2, 4, 4), normal(3, 2, 4, 4, seed=1)
    found = add_noise(x0, eps, noise.at(t, x0))
    for i in range(3):
        close(found[i], add_noise(x0[i], eps[i], noise.abar()[t[i]].item()))


@pytest.mark.system("ddpm-forward", "limit")
def test_what_tends_to_noise() -> None:
    """The jump forgets x_0; one step, at the end too, stays near where it was."""
    noise, x0 = NoiseSchedule(), torch.full((N,), 3.0, dtype=torch.float64)
    x = add_noise(x0, normal(N), noise.abar()[-1].item())
    assert abs(x.mean()) < 0.03
    assert abs(x.std() - 1) < 0.01
    step = noise_step(x0, normal(N), noise.betas()[-1].item())
    assert step.mean() > 2.9
    assert step.std() < 0.2


@pytest.mark.system("noise-schedules")
@pytest.mark.system("noise-schedules", "oracle")
@pytest.mark.parametrize("shape", SHAPES)
def test_schedules_of_diffusers(shape: Any) -> None:
    diffusers = pytest.importorskip("diffusers")
    theirs = {"scaled-linear": "scaled_linear", "cosine": "squaredcos_cap_v2"}.get(shape, shape)
    for rescale in (False, True):
        noise = NoiseSchedule(shape, 1000, 0.00085, 0.012, rescale)
        scheduler = diffusers.DDPMScheduler(
            beta_schedule=theirs, beta_start=0.00085, beta_end=0.012, rescale_betas_zero_snr=rescale
        )
        close(noise.betas(), scheduler.betas, loosen=3)
        close(noise.abar(), scheduler.alphas_cumprod)
        assert (noise.abar().diff() < 0).all()


@pytest.mark.system("noise-schedules", "smoother")
def test_cosine_keeps_information_longer() -> None:
    """At every time but the ends ᾱ of cosine is higher, and its largest drop in a step is smaller than linear's."""
    linear, cosine = (NoiseSchedule(shape).abar() for shape in ("linear", "cosine"))
    assert (cosine[1:990] > linear[1:990]).all()
    assert cosine.diff().abs().max() < linear.diff().abs().max()
    half = [(abar < 0.5).nonzero()[0].item() for abar in (linear, cosine)]
    assert half[1] > 1.8 * half[0]


@pytest.mark.system("noise-schedules", "zero-terminal")
def test_nothing_is_left_at_the_end_of_a_zero_terminal_schedule() -> None:
    noise = NoiseSchedule(zero_terminal=True)
    assert noise.abar()[-1] == 0
    close(noise.abar()[0], NoiseSchedule().abar()[0])
    assert signal_to_noise(noise.abar())[-1] == 0
    with pytest.raises(Mistake, match="predicts v"):
        Plan(noise)
    assert Plan(noise, "v").predicts == "v"


@pytest.mark.system("prediction-parametrisation")
@pytest.mark.system("prediction-parametrisation", "both-ways")
@pytest.mark.parametrize("abar", [1e-6, 0.3, 1 - 1e-6])
def test_each_prediction_gives_image_and_noise_back(abar: float) -> None:
    x0, eps = normal(4, 3), normal(4, 3, seed=1)
    x = add_noise(x0, eps, abar)
    for predicts in ("eps", "x0", "v"):
        found = estimate(predicts, target_of(predicts, x0, eps, abar), x, abar)
        close(found.x0, x0, loosen=10)  # divided by √ᾱ = 1e-3
        close(found.eps, eps, loosen=10)
    close(eps_from_score(score_from_eps(eps, abar), abar), eps)
    close(score_from_eps(eps, abar), -(x - abar**0.5 * x0) / (1 - abar), loosen=10)  # ∇ log N(x; √ᾱ x_0, 1 − ᾱ)


@pytest.mark.system("prediction-parametrisation", "both-ways")
def test_v_is_defined_at_both_ends() -> None:
    x0, eps = normal(4, 3), normal(4, 3, seed=1)
    assert v_of(x0, eps, 0.0).equal(-x0)
    assert v_of(x0, eps, 1.0).equal(eps)
    assert estimate("v", -x0, eps, 0.0).x0.equal(x0)
    assert not estimate("eps", eps, eps, torch.zeros(1, dtype=torch.float64)).x0.isfinite().all()


@pytest.mark.system("ddpm")
@pytest.mark.system("ddpm", "exact-reverse")
def test_the_exact_reverse_step_of_gaussian_data() -> None:
    """Data N(0, s²): q(x_{t−1} | x_t) is Gaussian by Bayes' rule. The predicted mean with the exact ε is its mean, and
    its variance lies between β̃ (a point, s = 0) and β (s = 1)."""
    noise = NoiseSchedule("linear", 50, 0.01, 0.2)
    for t in (3, 20, 49):
        abar, before = noise.abar()[t].item(), noise.abar_before()[t].item()
        alpha, beta = abar / before, 1 - abar / before
        found = {}
        for s in (0.0, 0.6, 1.0):
            prior = before * s**2 + 1 - before  # of x_{t−1}
            gain = alpha**0.5 * prior / (alpha * prior + beta)
            x = normal(5)
            eps = (1 - abar) ** 0.5 * x / (abar * s**2 + 1 - abar)
            x0 = estimate("eps", eps, x, abar).x0
            mean = before**0.5 * beta / (1 - abar) * x0 + alpha**0.5 * (1 - before) / (1 - abar) * x
            close(mean, gain * x)
            found[s] = prior - gain * alpha**0.5 * prior
        close(found[0.0], float(reverse_variance(abar, before, "posterior")))
        close(found[1.0], float(reverse_variance(abar, before, "beta")))
        assert found[0.0] < found[0.6] < found[1.0]
    with pytest.raises(ValueError, match="choose beta or posterior"):
        reverse_variance(0.1, 0.2, "small")
