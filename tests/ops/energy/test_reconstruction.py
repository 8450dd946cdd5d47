"""Autoencoders as energies: wrappers, the bound, and the residual of a denoising one."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.distributions import MultivariateNormal

from descend.losses.variational import bernoulli_nll
from descend.models import autoencoder, vae
from descend.ops.energy.reconstruction import bound_energy, reconstruction_energy, residual_score
from descend.ops.energy.score import gaussian_score
from descend.seeds import generator
from descend.theory.evidence import elbo_by_reconstruction
from tests.close import close
from tests.theory.test_latent_variable import model as linear_model

pytestmark = pytest.mark.system("autoencoders-as-ebm")
DOUBLE = torch.float64
X = torch.randn(6, 3, generator=generator(0), dtype=DOUBLE)


@pytest.mark.system("autoencoders-as-ebm", "wrappers")
def test_the_reconstruction_error_as_an_energy() -> None:
    """A projection on a line rebuilds that line: its energy is the squared distance from it. A full code: 0."""
    u = torch.tensor([0.6, 0.8, 0.0], dtype=DOUBLE)
    energy = reconstruction_energy(lambda x: (x @ u)[:, None] * u)
    close(energy(X), X.square().sum(1) - (X @ u).square())
    assert energy(3.0 * u[None]).max() < 1e-20
    assert reconstruction_energy(lambda x: x)(X).max() == 0
    images = torch.rand(2, 1, 4, 4)
    close(reconstruction_energy(torch.zeros_like)(images), images.square().sum((1, 2, 3)))


@pytest.mark.system("autoencoders-as-ebm", "wrappers")
def test_the_negative_bound_is_above_the_negative_evidence() -> None:
    """A linear VAE with q of another width: −ELBO ≥ −log p, equal with the exact posterior."""
    model = linear_model()

    def elbo(x: Tensor, wider: float) -> Tensor:
        found = []
        for row in x:
            p = model.posterior(row)
            q = MultivariateNormal(p.mean, wider * p.covariance_matrix)
            found.append(elbo_by_reconstruction(model, row, q).elbo)
        return torch.stack(found)

    exact = -model.marginal.log_prob(X)
    assert (bound_energy(lambda x: elbo(x, 2.0))(X) > exact + 0.1).all()
    close(bound_energy(lambda x: elbo(x, 1.0))(X), exact)


@pytest.mark.system("autoencoders-as-ebm", "score")
def test_the_residual_of_the_best_denoiser_is_the_score() -> None:
    """Data N(μ, v I) seen with noise σ: the best rebuild is μ + v/(v + σ²) (x − μ); (rebuild − x)/σ² is the score of
    the noisy density (Tweedie). Its energy grows away from the data."""
    mu, v, sigma = torch.tensor([0.3, -1.0, 0.5], dtype=DOUBLE), 0.7, 0.4

    def rebuild(x: Tensor) -> Tensor:
        return mu + v / (v + sigma**2) * (x - mu)

    close(residual_score(rebuild, sigma)(X), gaussian_score(X, mu, v + sigma**2))
    energy = reconstruction_energy(rebuild)
    close(energy(X), sigma**4 * gaussian_score(X, mu, v + sigma**2).square().sum(1))


@pytest.mark.system("autoencoders-as-ebm", "wrappers")
def test_the_librarys_own_autoencoders_are_energies() -> None:
    """An autoencoder by its reconstruction, a VAE by minus its bound at fixed noise: one number for each image."""
    torch.manual_seed(0)
    plain = autoencoder.Autoencoder(autoencoder.TINY)
    x = autoencoder.TINY_INPUT()
    with torch.no_grad():
        close(reconstruction_energy(plain.reconstruct)(x), (x - plain.reconstruct(x)).square().sum((1, 2, 3)))
    model = vae.VAE(vae.TINY)
    images, noise = vae.TINY_INPUT()

    def elbo(x: Tensor) -> Tensor:
        logits, kl = model(x, noise)
        seen = x.unsqueeze(1).expand_as(logits).flatten(0, 1)
        return -bernoulli_nll(seen, logits.flatten(0, 1)).view(2, -1).mean(1) - kl

    with torch.no_grad():
        found = bound_energy(elbo)(images)
        assert found.shape == (2,)
        close(found, -elbo(images))
        assert (found > 0).all(), "pixels are bits of a likelihood below 1"
