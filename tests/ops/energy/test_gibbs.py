"""Gibbs distributions on finite sets and grids, and the exact gradient of the likelihood."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from descend.losses.energy import contrast, negative_log_likelihood
from descend.ops.energy.gibbs import (
    gibbs,
    grad_log_likelihood,
    grad_log_partition,
    integrate_energy,
    log_partition,
    normalise_exponential,
    normalise_square,
)
from descend.seeds import generator
from tests.close import close

DOUBLE = torch.float64
ENERGIES = torch.tensor([[0.0, 1.0, 2.0], [5.0, -3.0, 0.5]], dtype=DOUBLE)


@pytest.mark.system("gibbs-distribution")
@pytest.mark.system("gibbs-distribution", "finite-set", "erratum")
def test_the_lowest_energy_is_the_likeliest() -> None:
    p = gibbs(ENERGIES)
    close(p, torch.softmax(-ENERGIES, -1))
    close(p.sum(-1), torch.ones(2, dtype=DOUBLE))
    assert (p.argmax(-1) == ENERGIES.argmin(-1)).all(), "E is the energy; with -E it would be the other end"
    close(p * log_partition(ENERGIES).exp()[:, None], (-ENERGIES).exp())
    assert gibbs(torch.tensor([1e4, 1e4 + 1.0], dtype=DOUBLE)).isfinite().all()


@pytest.mark.system("gibbs-distribution", "grid", "two-functions")
def test_densities_on_a_grid() -> None:
    """Both kinds of functions, normalised: f² of a Hermite function, and e^f of a Gaussian."""
    line = torch.linspace(-10, 10, 4001, dtype=DOUBLE)
    step = float(line[1] - line[0])
    wave = line * (-line.square() / 2).exp()
    p = normalise_square(wave, step)
    close(p.sum() * step, torch.tensor(1.0, dtype=DOUBLE))
    close(p, wave.square() * 2 / math.sqrt(math.pi))
    q = normalise_exponential(-line.square() / 2, step)
    close(q, torch.distributions.Normal(0.0, 1.0).log_prob(line).exp())


@pytest.mark.system("gibbs-distribution", "two-functions", "relative")
def test_on_a_finite_set_only_differences_count() -> None:
    f = torch.tensor([1.0, -2.0, 0.5], dtype=DOUBLE)
    close(normalise_square(f), torch.tensor([1.0, 4.0, 0.25], dtype=DOUBLE) / 5.25)
    close(normalise_exponential(f + 180), normalise_exponential(f))


@pytest.mark.system("gibbs-distribution", "grid")
def test_an_energy_of_the_plane_is_integrated() -> None:
    """log Z of ‖x‖²/2σ² is log 2πσ²."""
    line = torch.linspace(-12, 12, 481, dtype=DOUBLE)
    points = torch.cartesian_prod(line, line)
    found = integrate_energy(lambda x: x.square().sum(1) / (2 * 1.7**2), points, 0.05**2, chunk=1000)
    close(found, torch.tensor(math.log(2 * math.pi * 1.7**2), dtype=DOUBLE))


class Table(nn.Module):
    """E(x, y) of a few y from a small network of x."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.net = nn.Sequential(nn.Linear(2, 5), nn.Tanh(), nn.Linear(5, 4)).double()

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.net(x)
        return found


@pytest.mark.system("ebm-likelihood-gradient")
@pytest.mark.system("ebm-likelihood-gradient", "exact", "sign")
def test_the_gradient_without_the_partition_function() -> None:
    """Every example has its own x and so its own expectation; autograd of log p is the oracle."""
    model, x = Table(), torch.randn(6, 2, generator=generator(0), dtype=DOUBLE)
    seen, weights = torch.tensor([0, 3, 1, 1, 2, 0]), list(model.parameters())
    ours = grad_log_likelihood(model(x), seen, weights)
    theirs = torch.autograd.grad(-nn.functional.cross_entropy(-model(x), seen, reduction="sum"), weights)
    for a, b in zip(ours, theirs, strict=True):
        close(a, b)
    for a, b in zip(
        grad_log_partition(model(x)[0], weights), torch.autograd.grad(log_partition(model(x)[0]), weights), strict=True
    ):
        close(a, b)
    close(negative_log_likelihood(model(x), seen).sum(), nn.functional.cross_entropy(-model(x), seen, reduction="sum"))


@pytest.mark.system("ebm-likelihood-gradient", "sampled")
def test_the_surrogate_has_this_gradient_in_expectation() -> None:
    """E(data) − E(samples): samples from p itself, 200,000 of them; and it pulls data down, pushes samples up."""
    theta = torch.tensor([0.4, -0.3], dtype=DOUBLE, requires_grad=True)
    phi = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [2.0, -1.0]], dtype=DOUBLE)
    samples = torch.multinomial(gibbs(phi @ theta).detach(), 200_000, replacement=True, generator=generator(1))
    (ours,) = torch.autograd.grad(contrast((phi @ theta)[2:3], (phi @ theta)[samples]), theta)
    (exact,) = grad_log_likelihood((phi @ theta)[None], torch.tensor([2]), [theta])
    assert (ours + exact).abs().max() < 0.01
    energy = torch.zeros(2, dtype=DOUBLE, requires_grad=True)
    (slope,) = torch.autograd.grad(contrast(energy[:1], energy[1:]), energy)
    assert slope[0] > 0 > slope[1]


@pytest.mark.system("ebm-likelihood-gradient", "ascends")
def test_it_fits_a_distribution_over_a_set() -> None:
    target = torch.tensor([0.1, 0.2, 0.3, 0.4], dtype=DOUBLE)
    energies = torch.zeros(4, dtype=DOUBLE, requires_grad=True)
    seen = torch.multinomial(target, 20_000, replacement=True, generator=generator(2))
    counts = torch.bincount(seen, minlength=4) / 20_000
    for _ in range(300):
        (up,) = grad_log_likelihood(energies.expand(len(seen), 4), seen, [energies])
        energies = (energies + up / len(seen)).detach().requires_grad_()
    assert (gibbs(energies) - counts).abs().max() < 1e-3
