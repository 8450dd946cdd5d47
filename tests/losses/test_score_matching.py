"""Score matching: explicit, implicit, sliced, denoising; what differs by a constant, and what is learned."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from descend.engine.minimise import minimise
from descend.losses.score_matching import (
    denoising_by_noise,
    denoising_score_matching,
    explicit_score_matching,
    implicit_score_matching,
    level_weights,
    sliced_score_matching,
)
from descend.models.energy_network import EnergyNetwork, EnergyNetworkConfig
from descend.models.score_network import spread_levels
from descend.ops.energy.score import log_smoothed, score_of_energy, score_to_noise, smoothed_score
from descend.optim.rules import Adam
from descend.optim.schedules import Linear
from descend.seeds import generator
from tests.close import close

DOUBLE = torch.float64


class Quadratic(nn.Module):
    """E = ½ (x − m)ᵀ A (x − m): its score is −A (x − m)."""

    def __init__(self, d: int = 2) -> None:
        super().__init__()
        self.a, self.m = nn.Parameter(torch.eye(d, dtype=DOUBLE)), nn.Parameter(torch.zeros(d, dtype=DOUBLE))

    def forward(self, x: Tensor) -> Tensor:
        return (((x - self.m) @ (self.a + self.a.T) / 2) * (x - self.m)).sum(1) / 2


def correlated(n: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Points of a Gaussian, and its precision."""
    root = torch.tensor([[1.0, 0.0], [0.8, 0.6]], dtype=DOUBLE)
    z = torch.randn(n, 2, generator=generator(seed), dtype=DOUBLE)
    return z @ root.T + torch.tensor([0.5, -1.0], dtype=DOUBLE), torch.linalg.inv(root @ root.T)


@pytest.mark.system("ebm-score-matching")
@pytest.mark.system("ebm-score-matching", "implicit")
def test_implicit_and_explicit_differ_by_a_constant() -> None:
    """On a fine grid, E over N(0, 1): for models s = −k x + c the difference is −½ E[s*²] whatever k and c are."""
    line = torch.linspace(-12, 12, 6001, dtype=DOUBLE)[:, None]
    p = torch.distributions.Normal(0.0, 1.0).log_prob(line[:, 0]).exp()
    differences = []
    for k, c in ((0.3, 0.0), (1.0, 0.5), (2.0, -1.0)):
        implicit = implicit_score_matching(lambda x: -k * x + c, line)
        explicit = explicit_score_matching(-k * line + c, -line)
        differences.append(torch.trapezoid(p * (implicit - explicit), line[:, 0]))
    close(torch.stack(differences), torch.full((3,), -0.5, dtype=DOUBLE))


@pytest.mark.system("ebm-score-matching", "implicit", "sliced")
def test_the_trace_exactly_and_in_expectation() -> None:
    torch.manual_seed(0)
    net = EnergyNetwork(EnergyNetworkConfig(inputs=3, width=8, depth=2)).double()
    score = score_of_energy(net)
    x = torch.randn(4, 3, generator=generator(1), dtype=DOUBLE)
    jacobian = torch.stack([torch.autograd.functional.jacobian(lambda at: score(at[None])[0], row) for row in x])
    exact = jacobian.diagonal(dim1=1, dim2=2).sum(1) + score(x).square().sum(1) / 2
    close(implicit_score_matching(score, x), exact)
    many = 20_000
    v = (torch.rand(many, 4, 3, generator=generator(2)) < 0.5).double() * 2 - 1
    sliced = sliced_score_matching(score, x.repeat(many, 1), v.flatten(0, 1)).view(many, 4).mean(0)
    assert (sliced - exact).abs().max() < 0.02
    one = EnergyNetwork(EnergyNetworkConfig(inputs=1, width=8, depth=2)).double()
    close(
        sliced_score_matching(score_of_energy(one), x[:, :1], torch.ones(4, 1, dtype=DOUBLE)),
        implicit_score_matching(score_of_energy(one), x[:, :1]),
    )


@pytest.mark.system("ebm-score-matching", "gradcheck")
def test_gradients_reach_the_weights_through_second_derivatives() -> None:
    x, v = torch.randn(2, 3, 2, generator=generator(3), dtype=DOUBLE)

    def losses(w: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
        score = score_of_energy(lambda at: torch.tanh(at @ w + b).sum(1))
        return implicit_score_matching(score, x), sliced_score_matching(score, x, v)

    w, b = torch.randn(2, 4, dtype=DOUBLE, requires_grad=True), torch.randn(4, dtype=DOUBLE, requires_grad=True)
    assert torch.autograd.gradcheck(losses, (w, b))


@pytest.mark.system("ebm-score-matching", "gaussian")
@pytest.mark.parametrize("form", ["exact", "sliced"])
def test_the_precision_of_a_gaussian_is_recovered(form: str) -> None:
    """The minimum over data is Σ⁻¹ of the data, without any normaliser."""
    x, precision = correlated(4000)
    model, random = Quadratic(), generator(4)

    def loss() -> Tensor:
        score = score_of_energy(model)
        if form == "exact":
            return implicit_score_matching(score, x).mean()
        return sliced_score_matching(score, x, torch.randn(x.shape, generator=random, dtype=DOUBLE)).mean()

    minimise(model, loss, 250, Adam(5e-2), Linear())
    found = (model.a + model.a.T).detach() / 2
    assert (found - precision).abs().max() < 0.12 * float(precision.abs().max())
    assert (model.m.detach() - x.mean(0)).abs().max() < 0.08


@pytest.mark.system("ebm-score-matching", "network")
def test_an_energy_network_learns_without_z() -> None:
    """Two Gaussians on a line: score matching finds the valley between them; the learned score is near the true one."""
    torch.manual_seed(0)
    model, random = EnergyNetwork(EnergyNetworkConfig(inputs=1, width=32, depth=2)), generator(5)

    def draw(n: int) -> Tensor:
        sign = (torch.rand(n, 1, generator=random) < 0.5).float() * 2 - 1
        return 1.5 * sign + 0.6 * torch.randn(n, 1, generator=random)

    minimise(model, lambda: implicit_score_matching(score_of_energy(model), draw(256)).mean(), 400, Adam(1e-2))
    line = torch.linspace(-2.5, 2.5, 51)[:, None]
    weights = torch.softmax(-(line - torch.tensor([[-1.5, 1.5]])).square() / 0.72, 1)
    true = (weights @ torch.tensor([[-1.5], [1.5]]) - line) / 0.36
    error = (score_of_energy(model)(line) - true).square().mean() / true.square().mean()
    assert error < 0.1


@pytest.mark.system("denoising-score-matching")
@pytest.mark.system("denoising-score-matching", "weight")
def test_the_weight_is_one_over_sigma_squared() -> None:
    s, noise = torch.randn(2, 7, 3, generator=generator(6), dtype=DOUBLE)
    sigma = torch.linspace(0.2, 3.0, 7, dtype=DOUBLE)
    ours = denoising_score_matching(s, noise, sigma)
    close(ours, denoising_by_noise(score_to_noise(s, sigma[:, None]), noise, 1 / sigma**2))
    assert not torch.allclose(ours, denoising_by_noise(score_to_noise(s, sigma[:, None]), noise, 1 / sigma))


@pytest.mark.system("multi-scale-score-model")
@pytest.mark.system("multi-scale-score-model", "weights")
def test_lambda_sigma_squared_is_the_weight_one() -> None:
    sigmas = torch.tensor(spread_levels(10.0, 0.1, 6), dtype=DOUBLE)
    close(level_weights(sigmas, sigmas.square()), torch.ones(6, dtype=DOUBLE))
    close(sigmas[1:] / sigmas[:-1], torch.full((5,), 0.01 ** (1 / 5), dtype=DOUBLE))
    assert spread_levels(3.0, 0.5, 1) == (0.5,)
    noise, predicted = torch.randn(2, 6, 2, generator=generator(7), dtype=DOUBLE)
    weighted = denoising_by_noise(predicted, noise, level_weights(sigmas, sigmas.square()))
    close(weighted, sigmas**2 * denoising_score_matching(-predicted / sigmas[:, None], noise, sigmas))


@pytest.mark.system("denoising-score-matching", "constant")
def test_denoising_and_explicit_have_the_same_gradient_not_the_same_value() -> None:
    """Integrals over the smoothed density of three data, for s(x) = −k x + c: ∂/∂k and ∂/∂c agree."""
    data, sigma = torch.tensor([[-1.0], [0.5], [2.0]], dtype=DOUBLE), 0.8
    line = torch.linspace(-12, 13, 10_001, dtype=DOUBLE)[:, None]
    theta = torch.tensor([0.3, 0.1], dtype=DOUBLE, requires_grad=True)
    s = -theta[0] * line + theta[1]
    explicit = explicit_score_matching(s, smoothed_score(line, data, sigma)) * log_smoothed(line, data, sigma).exp()
    parts = []
    for point in data:
        noise = (line - point) / sigma
        density = (-noise.square()[:, 0] / 2).exp() / (sigma * math.sqrt(2 * math.pi))
        parts.append(density * denoising_score_matching(s, noise, sigma))
    values = [torch.trapezoid(f, line[:, 0]) for f in (explicit, torch.stack(parts).mean(0))]
    grads = [torch.autograd.grad(value, theta, retain_graph=True)[0] for value in values]
    close(grads[0], grads[1])
    assert values[1] - values[0] > 0.4


@pytest.mark.system("denoising-score-matching", "gaussian")
def test_on_gaussian_data_the_learned_score_is_that_of_the_wider_gaussian() -> None:
    """S940-DLD.144: −(x − μ)/(var + σ²), learned by a linear model from N(1, 0.7²) with σ = 0.5."""
    model, random = nn.Linear(1, 1).double(), generator(8)

    def loss() -> Tensor:
        x, noise = torch.randn(2, 2000, 1, generator=random, dtype=DOUBLE)
        return denoising_score_matching(model(1 + 0.7 * x + 0.5 * noise), noise, 0.5).mean()

    minimise(model, loss, 300, Adam(3e-2), Linear())
    variance = 0.7**2 + 0.5**2
    assert abs(float(model.weight.detach()) + 1 / variance) < 0.05
    assert abs(float(model.bias.detach()) - 1 / variance) < 0.05
