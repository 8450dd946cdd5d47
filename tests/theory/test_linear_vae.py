"""The linear VAE in closed form: probabilistic PCA, what beta does, and when it collapses."""

from __future__ import annotations

import pytest
import torch
from scipy.optimize import minimize
from scipy.stats import multivariate_normal
from sklearn.decomposition import PCA

from descend.theory.linear_vae import collapses, fit_linear_vae, linear_optimum, reconstruction_variance
from tests.close import close


def rows(n: int = 300, d: int = 5, seed: int = 0) -> torch.Tensor:
    random = torch.Generator().manual_seed(seed)
    return (
        torch.randn(n, d, dtype=torch.float64, generator=random)
        @ torch.randn(d, d, dtype=torch.float64, generator=random)
        + 3
    )


@pytest.mark.system("vae", "linear", "encoder")
@pytest.mark.parametrize("seed", range(3))
def test_the_bound_of_the_best_linear_vae_is_the_exact_likelihood(seed: int) -> None:
    x = rows(seed=seed)
    model = fit_linear_vae(x, 2)
    mean, covariance = model.posterior(x)
    close(covariance, covariance.diagonal().diag(), loosen=1e3)  # orthogonal columns: a diagonal q is enough
    close(model.elbo(x, mean, covariance.diagonal()), model.log_likelihood(x))
    theirs = PCA(2).fit(x.numpy())
    # scikit-learn's eigenvalues have 1/(n − 1)
    ours = fit_linear_vae(x, 2, noise=theirs.noise_variance_ * (len(x) - 1) / len(x))
    close(ours.noise, model.noise)
    assert float(model.log_likelihood(x).mean()) == pytest.approx(theirs.score(x.numpy()), rel=1e-4)
    covariance_x = (model.w @ model.w.T + model.noise * torch.eye(5, dtype=torch.float64)).numpy()
    exact = multivariate_normal(model.mean.numpy(), covariance_x).logpdf(x.numpy())
    close(model.log_likelihood(x), torch.from_numpy(exact))
    away = model.elbo(x, mean + 0.1, covariance.diagonal())
    assert (away < model.log_likelihood(x)).all()


@pytest.mark.system("beta-vae", "direction", "threshold")
@pytest.mark.parametrize("beta", [0.25, 1.0, 2.0, 4.0, 5.0, 6.0])
def test_closed_form_against_a_general_optimizer(beta: float) -> None:
    """x ~ N(0, S), encoder mean a x, variance v, decoder w: minimised over (a, v, w) numerically."""
    s, noise = 1.0, 0.2

    def loss(p: list[float]) -> float:
        a, w, v = p[0], p[1], 2.718281828459045 ** p[2]
        error = (1 - w * a) ** 2 * s + w**2 * v
        return error / (2 * noise) + beta * (a**2 * s + v - p[2] - 1) / 2

    best = min(
        (minimize(loss, start, tol=1e-12) for start in ([0.7, 0.7, -1.0], [0.05, 0.05, 0.0])), key=lambda r: r.fun
    )
    a, w, log_v = best.x
    found = linear_optimum(torch.tensor([s], dtype=torch.float64), noise, beta)
    assert float(found.weight) == pytest.approx(w**2, abs=2e-2 if beta == 5 else 1e-4)
    error = (1 - w * a) ** 2 * s + w**2 * 2.718281828459045**log_v
    assert float(found.error) == pytest.approx(error, abs=2e-3)
    collapsed = bool(collapses(torch.tensor([s]), noise, beta))
    assert collapsed == (beta >= 5)
    assert (float(found.kl) == 0) == collapsed


@pytest.mark.system("beta-vae", "direction")
def test_more_beta_less_kl_and_more_error() -> None:
    betas = torch.linspace(0.1, 8, 40, dtype=torch.float64)
    found = linear_optimum(torch.ones(40, dtype=torch.float64), 0.2, betas)
    assert (found.kl.diff() <= 0).all()
    assert (found.error.diff() >= 0).all()
    assert found.kl[0] > 1
    assert found.error[-1] == 1


@pytest.mark.system("vae", "elbo")
def test_the_variance_of_the_estimate_falls_as_one_over_l() -> None:
    z = 0.6 + 0.35**0.5 * torch.randn(400_000, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    values = (1.3 - 0.9 * z) ** 2 / 0.8
    for samples in (1, 10, 100):
        measured = values.view(-1, samples).mean(1).var()
        assert float(measured) == pytest.approx(reconstruction_variance(1.3, 0.9, 0.4, 0.6, 0.35, samples), rel=0.05)
