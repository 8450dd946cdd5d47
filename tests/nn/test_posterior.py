"""Amortised posteriors: density, KL, and the flow that is none for K = 0."""

from __future__ import annotations

import pytest
import torch
from torch.distributions import Normal

from descend.nn.posterior import FlowPosterior, GaussianPosterior
from descend.ops.latent import gaussian_kl
from tests.close import close


def given() -> tuple[torch.Tensor, torch.Tensor]:
    random = torch.Generator().manual_seed(0)
    return (torch.randn(4, 5, dtype=torch.float64, generator=random),
            torch.randn(4, 6, 2, dtype=torch.float64, generator=random))  # fmt: skip


@pytest.mark.system("vae", "encoder")
def test_a_gaussian_posterior() -> None:
    torch.manual_seed(0)
    q, (h, eps) = GaussianPosterior(5, 2).double(), given()
    mu, log_var = q.moments(h)
    found = q(h, eps)
    sigma = (log_var / 2).exp()
    assert (sigma > 0).all()
    close(found.z, mu[:, None] + sigma[:, None] * eps)
    close(found.log_q, Normal(mu[:, None], sigma[:, None]).log_prob(found.z).sum(-1))
    close(found.kl, gaussian_kl(mu, log_var))


@pytest.mark.system("flow-posterior-vae")
@pytest.mark.system("flow-posterior-vae", "no-flow")
def test_no_steps_are_the_gaussian() -> None:
    torch.manual_seed(0)
    flow, (h, eps) = FlowPosterior(5, 2, 0).double(), given()
    plain = GaussianPosterior(5, 2).double()
    plain.load_state_dict(flow.state_dict())
    for ours, theirs in zip(flow(h, eps), plain(h, eps), strict=True):
        assert torch.equal(ours, theirs)


@pytest.mark.system("flow-posterior-vae", "log-determinants")
def test_the_density_of_a_flow() -> None:
    """log q by the Jacobian of the whole map ε -> z, and a KL whose mean is that of log q − log p."""
    torch.manual_seed(1)
    flow, (h, eps) = FlowPosterior(5, 2, 4).double(), given()
    found = flow(h, eps)
    for i in range(4):
        for s in range(2):
            jacobian = torch.func.jacrev(lambda e, i=i: flow(h[i : i + 1], e[None, None]).z[0, 0])(eps[i, s])
            log_q = Normal(0.0, 1.0).log_prob(eps[i, s]).sum() - torch.linalg.slogdet(jacobian).logabsdet
            close(found.log_q[i, s], log_q)
    many = torch.randn(4, 40_000, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    large = flow(h, many)
    estimate = (large.log_q - Normal(0.0, 1.0).log_prob(large.z).sum(-1)).mean(1)
    assert (large.kl - estimate).abs().max() < 0.05
    assert (large.kl > 0).all()
