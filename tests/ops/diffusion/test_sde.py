"""SDEs: increments, moments of simulated paths, and what they have to do with DDPM."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from descend.losses.diffusion import score_matching_loss
from descend.ops.diffusion.schedule import NoiseSchedule
from descend.ops.diffusion.sde import SDE, VE, VP, SubVP
from descend.sampling.diffusion.stochastic import solve_sde
from tests.close import close

SDES: dict[str, SDE] = {"ve": VE(0.01, 5.0), "vp": VP(), "sub-vp": SubVP()}


def times(n: int = 11) -> Tensor:
    return torch.linspace(0, 1, n, dtype=torch.float64)


@pytest.mark.system("ve-vp-sde")
@pytest.mark.system("ve-vp-sde", "moments")
@pytest.mark.system("score-sde")
@pytest.mark.parametrize("name", SDES)
def test_drift_and_diffusion_give_the_marginal(name: str) -> None:
    """m' = (f/x) m and (s²)' = 2 (f/x) s² + g², by autograd of the closed forms."""
    sde, t = SDES[name], times()[1:].requires_grad_()
    mean, std = sde.marginal(t)
    slope = sde.drift(torch.ones(len(t), 1, dtype=torch.float64), t)[:, 0].detach()
    d_mean = torch.autograd.grad(mean.sum(), t, retain_graph=True)[0] if mean.requires_grad else torch.zeros_like(t)
    d_var = torch.autograd.grad(std.square().sum(), t)[0]
    close(d_mean, slope * mean)
    close(d_var, 2 * slope * std.square() + sde.diffusion(t).square())


@pytest.mark.system("score-sde", "increments")
@pytest.mark.parametrize("name", SDES)
def test_simulated_paths_have_these_moments(name: str) -> None:
    """20,000 paths by Euler-Maruyama in 400 steps; the increments of pure noise (f = 0, g = 1) have the variance dt."""
    sde, n = SDES[name], 20_000
    random = torch.Generator().manual_seed(0)
    draw = lambda: torch.randn(n, 1, generator=random, dtype=torch.float64)
    x0 = torch.full((n, 1), 1.5, dtype=torch.float64)
    f = lambda x, t: sde.drift(x, torch.full((n,), t, dtype=torch.float64))
    g = lambda x, t: sde.diffusion(torch.tensor(t, dtype=torch.float64)) * torch.ones_like(x)
    path = list(solve_sde(f, g, x0, times(401).tolist(), draw))
    for step in (99, 399):
        mean, std = sde.marginal(times(401)[step + 1])
        assert abs(path[step].mean() - 1.5 * mean) < 0.02 * max(1.0, float(std))
        assert abs(path[step].std() / std - 1) < 0.02
        close(
            sde.noised(x0[:2], times(401)[step + 1].expand(2), draw()[:2] * 0 + 1),
            (1.5 * mean + std).expand(2, 1),
        )
    zero, one = (lambda x, t, v=v: torch.full_like(x, v) for v in (0.0, 1.0))
    wiener = torch.stack(list(solve_sde(zero, one, x0 * 0, times(101).tolist(), draw)))
    assert abs(wiener.diff(dim=0).var() / 0.01 - 1) < 0.01
    assert abs(wiener[-1].var() - 1) < 0.05


@pytest.mark.system("ve-vp-sde", "vp-is-ddpm")
@pytest.mark.system("score-sde", "discrete")
def test_vp_is_ddpm_in_the_limit() -> None:
    """β_t = β(t/T) / T: ᾱ of the chain comes to exp(−∫β) as T grows; the chain is Euler-Maruyama to first order."""
    sde, gaps = VP(), []
    for steps in (100, 1000, 10_000):
        t = (torch.arange(steps, dtype=torch.float64) + 0.5) / steps
        abar = (1 - sde.beta(t) / steps).cumprod(0)
        gaps.append(float((abar - sde.abar(t + 0.5 / steps)).abs().max()))
    assert gaps[0] > 8 * gaps[1] > 64 * gaps[2]
    assert gaps[2] < 5e-4
    ddpm = NoiseSchedule().abar()  # 1e-4 .. 0.02 in 1000 steps are β of 0.1 .. 20
    assert (ddpm - sde.abar(times(1001)[1:])).abs().max() < 5e-3
    beta = sde.beta(torch.tensor(0.3, dtype=torch.float64)) / 1000
    close((1 - beta).sqrt() - (1 - beta / 2) + 1, 1 - beta.square() / 8, loosen=10)


@pytest.mark.system("score-sde", "discrete")
def test_levels_of_a_score_model_are_ve_in_steps() -> None:
    """x_i = x_{i−1} + √(σ_i² − σ_{i−1}²) z has the marginal of VE at t = i/n."""
    sde = VE(0.01, 50.0)
    sigma = sde.sigma(times(21))
    added = sigma.square().diff().cumsum(0).sqrt()
    close(added, sde.marginal(times(21))[1][1:])


@pytest.mark.system("ve-vp-sde", "sub-vp")
def test_sub_vp_has_less_variance() -> None:
    t = times()[1:]
    vp, sub = VP().marginal(t), SubVP().marginal(t)
    assert vp[0].equal(sub[0])
    assert (sub[1] < vp[1]).all()
    assert (SubVP().diffusion(t) < VP().diffusion(t)).all()


@pytest.mark.system("ve-vp-sde", "ve")
def test_ve_ends_where_its_prior_is() -> None:
    sde = VE(0.01, 50.0)
    close(sde.marginal(torch.tensor([1.0], dtype=torch.float64))[1], torch.tensor([50.0], dtype=torch.float64), 100.0)
    x = torch.tensor([[3.0, -4.0]], dtype=torch.float64)
    theirs = torch.distributions.Normal(0 * x, 0 * x + 50.0).log_prob(x).sum(1)
    close(sde.prior_log_prob(x), theirs)


@pytest.mark.system("score-sde", "loss")
@pytest.mark.parametrize("name", SDES)
def test_the_best_score_minimises_the_loss_in_continuous_time(name: str) -> None:
    """Data N(0, 1.5²) and s(x, t) = −c x: the least loss is at c = 1 / (m² 2.25 + s²), the true score; the weight
    λ_t = s_t² makes the loss of the best score comparable over t: never above 1 for each number."""
    sde, n = SDES[name], 400_000
    random = torch.Generator().manual_seed(0)
    x0, eps = 1.5 * torch.randn(n, 1, generator=random).double(), torch.randn(n, 1, generator=random).double()
    for time in (0.6, 0.9):
        t = torch.full((n,), time, dtype=torch.float64)
        x, std = sde.noised(x0, t, eps), sde.marginal(t)[1]
        best = 1 / (2.25 * sde.marginal(t[:1])[0].square() + std[:1].square())
        losses = [score_matching_loss(-f * best * x, eps, std).mean() for f in (0.95, 1.0, 1.05)]
        fitted = -(x * std[:, None] * -eps).sum() / (x * std[:, None]).square().sum()
        assert abs(fitted / best - 1) < 0.02
        assert losses[1] < 1
        assert losses[1] < min(losses[0], losses[2]) + 1e-4
