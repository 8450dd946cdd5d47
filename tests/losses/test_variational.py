"""The VAE's loss: its parts against torch's distributions, signs and constants, and the importance-weighted bound."""

from __future__ import annotations

import math

import pytest
import torch
from torch.distributions import Bernoulli, Normal, kl_divergence
from torch.nn.functional import binary_cross_entropy_with_logits

from descend.errors import Mistake
from descend.losses.reconstruction import half_squared_error
from descend.losses.variational import (
    bernoulli_nll,
    gaussian_constant,
    gaussian_error,
    gaussian_nll,
    importance_bound,
    vae_loss,
)
from descend.ops.latent import gaussian_kl, gaussian_kl_units
from descend.theory.linear_vae import LinearVAE
from tests.close import close

pytestmark = pytest.mark.system("vae-loss")


def codes(n: int = 5, k: int = 3) -> tuple[torch.Tensor, torch.Tensor]:
    random = torch.Generator().manual_seed(0)
    mu, log_var = torch.randn(2, n, k, dtype=torch.float64, generator=random)
    return mu, log_var


@pytest.mark.system("vae-loss", "gaussian-kl", "per-dimension")
@pytest.mark.system("vae", "elbo")
def test_the_kl_is_torchs_and_zero_only_at_the_prior() -> None:
    mu, log_var = codes()
    theirs = kl_divergence(Normal(mu, (log_var / 2).exp()), Normal(torch.zeros_like(mu), 1.0))
    close(gaussian_kl_units(mu, log_var), theirs)
    close(gaussian_kl(mu, log_var), theirs.sum(-1))
    assert gaussian_kl(torch.zeros(3), torch.zeros(3)) == 0
    assert (gaussian_kl_units(mu, log_var) > 0).all()
    one = log_var.mean(-1, keepdim=True).expand_as(log_var)  # one sigma for all units is another number
    assert (gaussian_kl(mu, one) - gaussian_kl(mu, log_var)).abs().min() > 1e-3


@pytest.mark.system("vae-loss", "constants")
@pytest.mark.system("vae", "decoders")
@pytest.mark.parametrize("variance", [0.3, 1.0, 2.5])
def test_a_gaussian_decoder(variance: float) -> None:
    """With its constant it is torch's density; without it the two differ by (D/2) log 2 pi s^2, not by half of one."""
    random = torch.Generator().manual_seed(1)
    x, f = torch.randn(2, 4, 2, 3, dtype=torch.float64, generator=random)
    close(gaussian_nll(x, f, variance), -Normal(f, math.sqrt(variance)).log_prob(x).flatten(1).sum(1))
    gap = gaussian_nll(x, f, variance) - gaussian_error(x, f, variance)
    close(gap, torch.full_like(gap, 3 * math.log(2 * math.pi * variance)))
    assert gaussian_constant(6, variance) == pytest.approx(6 * gaussian_constant(1, variance))


@pytest.mark.system("vae", "decoders")
def test_a_bernoulli_decoder() -> None:
    random = torch.Generator().manual_seed(2)
    logits = torch.randn(4, 2, 3, dtype=torch.float64, generator=random)
    x = (torch.rand(4, 2, 3, dtype=torch.float64, generator=random) < 0.5).double()
    close(bernoulli_nll(x, logits), -Bernoulli(logits=logits).log_prob(x).flatten(1).sum(1))
    grey = torch.rand(4, 2, 3, dtype=torch.float64, generator=random)
    close(bernoulli_nll(grey, logits), binary_cross_entropy_with_logits(logits, grey, reduction="none").sum((1, 2)))
    assert bernoulli_nll(x, 1e4 * logits.sign()).isfinite().all()
    with pytest.raises(Mistake, match=r"needs pixels in 0\.\.1"):
        bernoulli_nll(grey + 1, logits)


@pytest.mark.system("vae-loss", "autoencoder", "reductions", "sign")
def test_sum_mean_and_what_is_left_without_the_kl() -> None:
    mu, log_var = codes()
    random = torch.Generator().manual_seed(3)
    x, y = torch.randn(2, 5, 7, dtype=torch.float64, generator=random)
    close(vae_loss(x, y, mu, log_var, beta=0.0, reduction="none"), half_squared_error(x, y))
    each = vae_loss(x, y, mu, log_var, 0.5, reduction="none")
    close(each, (x - y).square().sum(1) + gaussian_kl(mu, log_var))
    close(vae_loss(x, y, mu, log_var, 0.5, reduction="sum"), each.sum())
    close(vae_loss(x, y, mu, log_var, 0.5), each.mean())
    assert (each > (x - y).square().sum(1)).all()  # + KL: the printed minus would make it smaller


@pytest.mark.system("beta-vae", "one-is-vae")
def test_beta_one_is_the_vae() -> None:
    mu, log_var = codes()
    x, y = torch.randn(2, 5, 7, dtype=torch.float64, generator=torch.Generator().manual_seed(4))
    plain = gaussian_error(x, y, 0.3) + gaussian_kl(mu, log_var)
    close(vae_loss(x, y, mu, log_var, 0.3, beta=1.0, reduction="none"), plain)
    close(vae_loss(x, y, mu, log_var, 0.3, 4.0, "none") - plain, 3 * gaussian_kl(mu, log_var))


@pytest.mark.system("vae-loss", "gradients")
def test_gradients_by_finite_differences() -> None:
    mu, log_var = codes()
    x, y = torch.rand(2, 5, 7, dtype=torch.float64, generator=torch.Generator().manual_seed(5))
    inputs = [v.clone().requires_grad_() for v in (y, mu, log_var)]
    assert torch.autograd.gradcheck(lambda y, m, v: vae_loss(x, y, m, v, 0.7, 2.0, "none"), inputs)
    assert torch.autograd.gradcheck(lambda logits: bernoulli_nll(x, logits), inputs[:1])


@pytest.mark.system("vae", "importance")
def test_the_importance_weighted_bound_rises_to_the_likelihood() -> None:
    """Linear Gaussian model, q away from its posterior: 1 sample in the mean is the ELBO, many are nearly log p."""
    w = torch.tensor([[0.9], [0.4]], dtype=torch.float64)
    model = LinearVAE(w, torch.zeros(2, dtype=torch.float64), 0.4)
    x = torch.tensor([[1.3, -0.2]], dtype=torch.float64)
    mu, var = torch.tensor([[0.4]], dtype=torch.float64), torch.tensor([0.5], dtype=torch.float64)
    z = mu + var.sqrt() * torch.randn(400_000, 1, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    log_p = Normal(z @ w.T, math.sqrt(0.4)).log_prob(x).sum(1) + Normal(0.0, 1.0).log_prob(z)[:, 0]
    weights = log_p - Normal(mu, var.sqrt()).log_prob(z)[:, 0]
    bounds = {k: importance_bound(weights.view(-1, k)).mean() for k in (1, 10, 100, 1000)}
    assert abs(bounds[1] - model.elbo(x, mu, var)[0]) < 0.01
    assert bounds[1] < bounds[10] < bounds[100] < bounds[1000] + 1e-3
    assert abs(bounds[1000] - model.log_likelihood(x)[0]) < 0.005
    close(importance_bound(weights[:, None]), weights)


def test_a_variance_must_be_positive() -> None:
    x = torch.zeros(1, 2)
    with pytest.raises(ValueError, match="above 0"):
        gaussian_error(x, x, 0.0)
