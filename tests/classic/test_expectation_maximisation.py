"""EM: the bound is tight after each E step, no step lowers it, and it goes where scikit-learn goes."""

from __future__ import annotations

import math
from itertools import chain, pairwise

import pytest
import torch
from sklearn.mixture import GaussianMixture
from torch import Tensor

from descend.classic.expectation_maximisation import Fit, elbo, maximise_expectation
from descend.data.streams.arrays import generator
from descend.data.toys.mixture import Mixture
from descend.errors import Mistake
from tests.close import close

TRUE = Mixture(
    torch.tensor([0.2, 0.3, 0.5], dtype=torch.float64),
    torch.tensor([[0.0, 3.0], [3.0, -1.0], [-2.0, -1.0]], dtype=torch.float64),
    torch.tensor([0.4, 1.0, 0.7], dtype=torch.float64),
)


def fitted(seed: int, steps: int = 200, n: int = 400) -> tuple[Tensor, Mixture, Fit[Mixture]]:
    """Points, the start (equal shares, three of the points, width 1) and where EM went."""
    x, _ = TRUE.sample(n, generator(seed))
    start = Mixture(torch.full((3,), 1 / 3, dtype=torch.float64), x[:3].clone(), torch.ones(3, dtype=torch.float64))
    return x, start, maximise_expectation(x, start, Mixture.fit, steps)


@pytest.mark.system("expectation-maximisation")
@pytest.mark.system("expectation-maximisation", "ascent")
@pytest.mark.parametrize("seed", range(3))
def test_neither_step_lowers_the_bound(seed: int) -> None:
    _, _, found = fitted(seed)
    path = list(chain.from_iterable(zip(found.after_e, found.after_m, strict=True)))
    assert len(path) > 10
    assert all(after >= before - 1e-9 * abs(before) for before, after in pairwise(path))
    assert path[-1] > path[0] + 100
    assert found.converged


@pytest.mark.system("expectation-maximisation")
@pytest.mark.system("expectation-maximisation", "tight")
def test_the_bound_is_tight_after_an_e_step_and_only_then() -> None:
    x, start, _ = fitted(0)
    log_joint, q = start.log_joint(x), start.posterior(x)
    close(elbo(log_joint, q), start.log_prob(x).sum())
    other = Mixture.fit(x, q)
    gap = (q * (q / other.posterior(x)).log()).sum()  # Σ KL(q ‖ p(z | x))
    close(elbo(other.log_joint(x), q), other.log_prob(x).sum() - gap)
    assert gap > 1
    sure = torch.eye(3, dtype=torch.float64)[torch.arange(len(x)) % 3]  # 0 log 0 = 0
    close(elbo(log_joint, sure), log_joint[sure.bool()].sum())


@pytest.mark.system("expectation-maximisation")
@pytest.mark.system("expectation-maximisation", "tight")
def test_the_recorded_bounds_are_log_likelihoods() -> None:
    x, start, found = fitted(1, steps=3)
    model = start
    for value in found.after_e:
        assert value == pytest.approx(model.log_prob(x).sum().item(), rel=1e-12)
        model = Mixture.fit(x, model.posterior(x))
    close(found.model.mu, model.mu)
    assert not found.converged


@pytest.mark.system("expectation-maximisation")
@pytest.mark.system("expectation-maximisation", "mixture")
@pytest.mark.system("mixture-of-gaussians")
@pytest.mark.system("mixture-of-gaussians", "em")
@pytest.mark.parametrize("steps", [1, 5, 60])
def test_goes_where_scikit_learn_goes(steps: int) -> None:
    x, start, _ = fitted(2)
    found = maximise_expectation(x, start, Mixture.fit, steps, gain=-math.inf).model
    theirs = GaussianMixture(
        3, covariance_type="spherical", tol=0.0, reg_covar=0.0, max_iter=steps, weights_init=start.pi.numpy(),
        means_init=start.mu.numpy(), precisions_init=1 / start.sigma.numpy() ** 2,
    )  # fmt: skip
    with pytest.warns(UserWarning, match="converge"):
        theirs.fit(x.numpy())
    close(found.pi, torch.from_numpy(theirs.weights_), loosen=10)
    close(found.mu, torch.from_numpy(theirs.means_), loosen=10)
    close(found.sigma**2, torch.from_numpy(theirs.covariances_), loosen=10)
    close(found.log_prob(x), torch.from_numpy(theirs.score_samples(x.numpy())), loosen=10)


@pytest.mark.system("mixture-of-gaussians")
@pytest.mark.system("mixture-of-gaussians", "em")
def test_the_truth_is_found_again() -> None:
    """From many points and a start near the components; the order is that of the start."""
    x, _ = TRUE.sample(20_000, generator(0))
    start = Mixture(torch.full((3,), 1 / 3, dtype=torch.float64), TRUE.mu + 0.5, torch.ones(3, dtype=torch.float64))
    found = maximise_expectation(x, start, Mixture.fit).model
    assert (found.pi - TRUE.pi).abs().max() < 0.01
    assert (found.mu - TRUE.mu).abs().max() < 0.05
    assert (found.sigma - TRUE.sigma).abs().max() < 0.02


def test_a_component_on_one_point_is_a_mistake() -> None:
    x = torch.tensor([[0.0], [1.0], [1.1]], dtype=torch.float64)
    with pytest.raises(Mistake, match="component 0 of the mixture has shrunk to a point"):
        Mixture.fit(x, torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]], dtype=torch.float64))
    with pytest.raises(ValueError, match="at least 1"):
        maximise_expectation(x, TRUE, Mixture.fit, steps=0)
