"""The Gaussian process and expected improvement: scikit-learn, Monte Carlo, limits, the loop, and Optuna's sampler."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
import optuna
import pytest
import torch
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern
from torch import Tensor

from descend.classic.bayesian import (
    expected_improvement,
    matern52,
    minimize,
    posterior,
    propose,
    squared_exponential,
)
from descend.classic.search import Uniform, random_search
from tests.close import close

pytestmark = pytest.mark.system("bayesian-optimization")


def points(n: int, d: int, seed: int) -> Tensor:
    return torch.rand(n, d, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


@pytest.mark.system("bayesian-optimization", "process")
@pytest.mark.parametrize(
    ("ours", "theirs"), [(squared_exponential, RBF), (matern52, functools.partial(Matern, nu=2.5))]
)
def test_posterior_against_scikit_learn(ours: Any, theirs: Any) -> None:
    h, query = points(7, 3, 0), points(11, 3, 1)
    f = (h.sum(1) * 3).sin()
    lengths = torch.tensor([0.4, 1.0, 2.0], dtype=torch.float64)
    kernel = ConstantKernel(1.7) * theirs(length_scale=lengths.numpy())
    peer = GaussianProcessRegressor(kernel, alpha=1e-3, optimizer=None).fit(h.numpy(), f.numpy())
    mu, s = posterior(h, f, query, functools.partial(ours, lengths=lengths, scale=1.7), noise=1e-3)
    expected_mu, expected_s = peer.predict(query.numpy(), return_std=True)
    close(mu, expected_mu, loosen=10)
    close(s, expected_s, loosen=10)
    close(ours(h, query, lengths, 1.7), kernel(h.numpy(), query.numpy()))


@pytest.mark.system("bayesian-optimization", "process")
def test_interpolates_and_returns_to_the_prior() -> None:
    h = torch.linspace(0, 3, 5, dtype=torch.float64)[:, None]
    f = torch.tensor([1.0, 0.2, 0.8, -0.5, 0.1], dtype=torch.float64)
    mu, s = posterior(h, f, h, noise=1e-12)
    close(mu, f, loosen=1e3)  # the jitter's share
    assert s.max() < 1e-4
    mu, s = posterior(h, f, torch.tensor([[50.0]], dtype=torch.float64))
    assert abs(mu.item()) < 1e-12
    assert s.item() == pytest.approx(1)


@pytest.mark.system("bayesian-optimization", "improvement")
def test_expected_improvement_against_monte_carlo() -> None:
    mu = torch.tensor([0.3, 0.1, -0.2, 1.0], dtype=torch.float64)
    s = torch.tensor([0.5, 0.01, 0.2, 0.9], dtype=torch.float64)
    draws = torch.randn(400_000, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) * s + mu
    gains = (0.15 - draws).clamp_min(0)
    error = gains.std(0) / math.sqrt(len(gains))
    assert ((expected_improvement(mu, s, 0.15) - gains.mean(0)).abs() < 4 * error).all()


@pytest.mark.system("bayesian-optimization", "improvement")
def test_expected_improvement_is_never_negative_and_has_its_limits() -> None:
    mu = torch.linspace(-60, 60, 241, dtype=torch.float64)
    ei = expected_improvement(mu, torch.ones_like(mu), 0.0)
    assert (ei >= 0).all()
    assert (ei.diff() <= 0).all()  # a higher mean promises less
    certain = expected_improvement(mu, torch.zeros_like(mu), 0.0)
    assert torch.equal(certain, (-mu).clamp_min(0))
    assert expected_improvement(mu[150], torch.tensor(2.0), 0.0) > expected_improvement(mu[150], torch.tensor(1.0), 0.0)


def test_gradcheck() -> None:
    mu = torch.tensor([0.3, -0.4], dtype=torch.float64, requires_grad=True)
    s = torch.tensor([0.5, 1.2], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda m, d: expected_improvement(m, d, 0.1), (mu, s))
    h = points(4, 2, 2)
    f, query = h.sum(1).requires_grad_(), points(3, 2, 3).requires_grad_()
    assert torch.autograd.gradcheck(lambda f, q: posterior(h, f, q)[0], (f, query))
    assert torch.autograd.gradcheck(lambda q: posterior(h, f.detach(), q)[1], query)


@pytest.mark.system("bayesian-optimization", "loop")
@pytest.mark.parametrize("kernel", [squared_exponential, matern52])
def test_finds_the_lowest_point_of_a_line(kernel: Any) -> None:
    x = torch.linspace(0, 6, 241, dtype=torch.float64)[:, None]
    f = lambda h: float((2 * h).sin() + 0.1 * (h - 4) ** 2)
    h, scores = minimize(f, x, trials=14, seed=1, kernel=kernel)
    assert scores.min() <= min(f(v) for v in x) + 1e-2
    assert len(h) == len(scores) == 14


@pytest.mark.system("bayesian-optimization", "loop")
def test_needs_fewer_trials_than_random_search_in_the_plane() -> None:
    side = torch.linspace(0, 1, 25, dtype=torch.float64)
    plane = torch.cartesian_prod(side, side)
    kernel = functools.partial(squared_exponential, lengths=0.3)
    f = lambda a, b: (a - 0.3) ** 2 + 0.5 * (b - 0.7) ** 2 + 0.2 * math.sin(4 * a * b)
    best = [
        minimize(lambda h: f(*h.tolist()), plane, 15, seed=seed, kernel=kernel)[1].min().item() for seed in range(6)
    ]
    space = {"a": Uniform(0, 1), "b": Uniform(0, 1)}
    by_chance = [random_search(space, lambda h: f(h["a"], h["b"]), 60, seed)[0].score for seed in range(6)]
    assert np.mean(best) < np.mean(by_chance)  # with a quarter of the trials


def test_equal_scores_and_wrong_starts() -> None:
    h = points(3, 1, 0)
    assert torch.isfinite(propose(h, torch.ones(3, dtype=torch.float64), points(9, 1, 1))).all()
    with pytest.raises(ValueError, match="random trials"):
        minimize(lambda h: 0.0, h, trials=2, start=3)


class Spy(optuna.samplers.GPSampler):
    """Optuna's sampler, keeping the function that it maximises and the point that it chose."""

    def _optimize_acqf(self, acqf: Any, best_params: Any) -> Any:
        self.acqf, self.chosen = acqf, super()._optimize_acqf(acqf, best_params)
        return self.chosen


def test_optunas_sampler_is_this_process_with_expected_improvement() -> None:
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    spy = Spy(seed=0, n_startup_trials=6)
    study = optuna.create_study(sampler=spy, direction="minimize")
    loss = lambda t: (math.log10(t.suggest_float("lr", 1e-4, 1, log=True)) + 2) ** 2 + t.suggest_float("p", 0, 0.8)
    study.optimize(loss, n_trials=9)
    gp = spy.acqf._gpr
    h = torch.as_tensor(gp._X_train)
    scores = torch.tensor([t.value for t in study.trials[:-1]], dtype=torch.float64)
    f = (scores - scores.mean()) / scores.std(correction=0)
    close(gp._y_train.squeeze(-1), -f)  # it maximises the standardized scores
    kernel = functools.partial(matern52, lengths=gp.inverse_squared_lengthscales.rsqrt(), scale=float(gp.kernel_scale))
    side = torch.linspace(0, 1, 60, dtype=torch.float64)
    plane = torch.cat([torch.cartesian_prod(side, side), torch.as_tensor(spy.chosen)[None]])
    mu, s = posterior(h, f, plane, kernel, float(gp.noise_var))
    ours = expected_improvement(mu, s, f.min())
    theirs = torch.as_tensor(spy.acqf.eval_acqf_no_grad(plane.numpy())).exp()
    close(ours, theirs, loosen=1e4)  # 1e-12 is added to its variance
    assert ours[-1] >= 0.999 * ours.max()  # the trial it proposes is where expected improvement is greatest
    assert study.trials[-1].params["p"] == pytest.approx(
        0.8 * float(spy.chosen[list(study.trials[0].params).index("p")])
    )
