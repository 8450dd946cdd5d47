"""The score function: of mixtures, of energies, of smoothed data; noise and score."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from descend.data.toys.mixture import Mixture
from descend.losses.score_matching import explicit_score_matching
from descend.models.energy_network import TINY, EnergyNetwork
from descend.ops.energy.score import (
    gaussian_score,
    log_smoothed,
    log_smoothing,
    noise_to_score,
    score_of,
    score_of_energy,
    score_to_noise,
    smoothed_score,
)
from descend.seeds import generator
from descend.views.densities import show_field
from tests.close import close

pytestmark = pytest.mark.system("score-function")
DOUBLE = torch.float64
PLANE = Mixture(
    torch.tensor([0.2, 0.3, 0.5], dtype=DOUBLE),
    torch.tensor([[0.0, 1.0], [2.0, -1.0], [-1.5, 0.5]], dtype=DOUBLE),
    torch.tensor([0.4, 1.0, 0.7], dtype=DOUBLE),
)
X = 2 * torch.randn(30, 2, generator=generator(0), dtype=DOUBLE)


@pytest.mark.system("score-function", "mixture")
def test_the_score_of_a_mixture_needs_no_normaliser() -> None:
    close(PLANE.score(X), score_of(PLANE.log_prob)(X))
    close(score_of(lambda x: PLANE.log_prob(x) + 7)(X), PLANE.score(X))
    far = torch.tensor([[50.0, 0.0], [5.0, 0.0]], dtype=DOUBLE)
    sizes = PLANE.score(far).norm(dim=1)
    assert sizes[0] > 10 * sizes[1], "large far from the data"
    one = Mixture(torch.ones(1, dtype=DOUBLE), torch.zeros(1, 2, dtype=DOUBLE), torch.full((1,), 1.5, dtype=DOUBLE))
    close(one.score(X), gaussian_score(X, torch.zeros(2, dtype=DOUBLE), 1.5**2))


@pytest.mark.system("score-function", "energy")
@pytest.mark.system("gibbs-distribution", "model")
def test_the_score_of_an_energy_is_minus_its_gradient() -> None:
    torch.manual_seed(0)
    model = EnergyNetwork(TINY).double()
    x = X.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(model(x).sum(), x)
    close(score_of_energy(model)(X), -gradient)
    close(score_of_energy(lambda x: -PLANE.log_prob(x))(X), PLANE.score(X))


def test_a_graph_is_kept_where_the_input_has_one() -> None:
    x = X[:3].clone().requires_grad_()
    assert score_of(PLANE.log_prob)(x).requires_grad
    with torch.no_grad():
        assert not score_of(PLANE.log_prob)(X[:3]).requires_grad


@pytest.mark.system("score-function", "explicit")
def test_the_explicit_loss_is_zero_at_the_true_score_alone() -> None:
    true = PLANE.score(X)
    assert explicit_score_matching(true, true).max() == 0
    close(explicit_score_matching(true + 0.3, true), torch.full((30,), 0.09, dtype=DOUBLE))


@pytest.mark.system("score-function", "smoothed")
def test_smoothed_data_have_a_score() -> None:
    """It is that of a mixture with a Gaussian on every datum: a mean shift over σ²."""
    data, sigma = torch.randn(12, 2, generator=generator(1), dtype=DOUBLE), 0.6
    close(smoothed_score(X, data, sigma), score_of(lambda x: log_smoothed(x, data, sigma))(X))
    mixture = Mixture(torch.full((12,), 1 / 12, dtype=DOUBLE), data, torch.full((12,), sigma, dtype=DOUBLE))
    close(log_smoothed(X, data, sigma), mixture.log_prob(X))
    weights = torch.softmax(-torch.cdist(X, data).square() / (2 * sigma**2), 1)
    close(smoothed_score(X, data, sigma), (weights @ data - X) / sigma**2)


@pytest.mark.system("score-function", "field")
def test_the_field_of_arrows() -> None:
    shown = show_field(lambda x: PLANE.score(x.double()), (-3.0, 3.0, -3.0, 3.0), "Score", X)
    arrows = torch.tensor(shown.content["arrows"], dtype=DOUBLE)
    true = PLANE.score(arrows[:, :2])
    longest = true.norm(dim=1).max()
    close(arrows[:, 2:] / arrows[:, 2:].norm(dim=1).max(), true / longest, loosen=1e5)  # places are in float32
    assert len(shown.content["points"]["data"]) == 30


@pytest.mark.system("denoising-score-matching")
@pytest.mark.system("denoising-score-matching", "conversion")
@pytest.mark.parametrize("abar", [0.99, 0.5, 0.02])
def test_a_ddpm_is_a_score_model_and_back(abar: float) -> None:
    """x_t = √ᾱ x_0 + √(1 − ᾱ) ε of Gaussian data N(μ, v): the best prediction of ε, converted, is the exact score."""
    mu, v, sigma = torch.tensor([0.4, -1.0], dtype=DOUBLE), 2.5, (1 - abar) ** 0.5
    mean, variance = abar**0.5 * mu, abar * v + 1 - abar

    def best_noise(x: Tensor) -> Tensor:
        """E[ε | x_t] of a linear Gaussian model."""
        return sigma * (x - mean) / variance

    exact = gaussian_score(X, mean, variance)
    close(noise_to_score(best_noise(X), sigma), exact)
    close(score_to_noise(exact, sigma), best_noise(X))
    close(score_to_noise(noise_to_score(X, sigma), sigma), X)


@pytest.mark.system("denoising-score-matching", "log-normaliser")
def test_the_constant_of_a_gaussian_has_d_half() -> None:
    for d in (1, 2, 3):
        x, clean = X[0, :1].repeat(d)[None], torch.zeros(1, d, dtype=DOUBLE)
        theirs = torch.distributions.Normal(clean, torch.tensor(0.5, dtype=DOUBLE)).log_prob(x).sum(1)
        close(log_smoothing(x, clean, 0.5), theirs)
        close(score_of(lambda at: log_smoothing(at, clean, 0.5))(x), -(x - clean) / 0.25)
