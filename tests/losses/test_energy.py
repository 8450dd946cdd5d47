"""Losses of an energy: hinge, noise contrast, negatives."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn
from torch.distributions import Normal

from descend.engine.minimise import minimise
from descend.losses.energy import (
    corrupt,
    draw_random,
    energy_hinge,
    find_hardest,
    noise_contrast,
    noise_contrastive_loss,
    spread_of,
)
from descend.optim.rules import Adam
from descend.seeds import generator
from tests.close import close

DOUBLE = torch.float64


@pytest.mark.system("energy-hinge-loss")
@pytest.mark.system("energy-hinge-loss", "margin")
def test_hinge_by_hand_and_as_torch() -> None:
    plus, minus = torch.randn(2, 9, generator=generator(0), dtype=DOUBLE)
    theirs = nn.functional.margin_ranking_loss(minus, plus, torch.ones(9), margin=0.7, reduction="none")
    close(energy_hinge(plus, minus, 0.7), theirs)
    flat = torch.zeros(3, dtype=DOUBLE)
    assert energy_hinge(flat, flat, 0.0).sum() == 0, "without a margin a constant energy is perfect"
    assert energy_hinge(flat, flat, 1.0).sum() == 3


@pytest.mark.system("energy-hinge-loss", "negatives")
def test_three_kinds_of_negatives() -> None:
    y, order = torch.randn(6, 2, generator=generator(1), dtype=DOUBLE), torch.tensor([3, 4, 5, 0, 1, 2])
    assert torch.equal(draw_random(y, order)[0], y[3])
    noise = torch.randn(6, 2, generator=generator(2), dtype=DOUBLE)
    close(corrupt(y, noise, 0.5) - y, 0.5 * noise)

    def energy(at: Tensor) -> Tensor:
        return (at - 1).square().sum(1)

    hard = find_hardest(energy, y, 0.1, 5)
    assert (energy(hard) < energy(y)).all(), "descent finds what the model takes for answers"
    assert not hard.requires_grad


class Curve(nn.Module):
    """E(x, y) = a network of both."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.net = nn.Sequential(nn.Linear(2, 32), nn.SiLU(), nn.Linear(32, 32), nn.SiLU())
        self.last = nn.Linear(32, 1)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        found: Tensor = self.last(self.net(torch.stack([x, y], 1))).squeeze(1)
        return found


@pytest.mark.system("energy-hinge-loss", "trained")
@pytest.mark.parametrize("kind", ["random", "corrupted", "adversarial"])
def test_a_margin_keeps_a_gap(kind: str) -> None:
    """Data y = sin 2x. With m = 1 the energy of data is lower than that of other y, by every kind of negatives."""
    random, model = generator(3), Curve(0)

    def loss() -> Tensor:
        x = 4 * torch.rand(128, generator=random) - 2
        y, noise = (2 * x).sin(), torch.randn(128, generator=random)
        if kind == "random":
            other = draw_random(y, torch.randperm(128, generator=random))
        elif kind == "corrupted":
            other = corrupt(y, noise, 0.7)
        else:
            other = find_hardest(lambda at: model(x, at[:, 0]), 1.5 * noise[:, None], 0.3, 3)[:, 0]
        return energy_hinge(model(x, y), model(x, other), 1.0).mean()

    minimise(model, loss, 300, Adam(1e-2))
    x = torch.linspace(-2, 2, 200)
    with torch.no_grad():
        gap = (model(x, (2 * x).sin() + 0.8) + model(x, (2 * x).sin() - 0.8)) / 2 - model(x, (2 * x).sin())
    assert gap.mean() > 0.5


@pytest.mark.system("energy-hinge-loss", "trained")
def test_without_a_margin_a_flat_energy_stays_flat() -> None:
    """A constant energy has the least loss with m = 0, and no slope; with m = 1 it is moved."""
    x = torch.linspace(-2, 2, 50)
    for m, moves in ((0.0, False), (1.0, True)):
        model = Curve(0)
        nn.init.zeros_(model.last.weight)
        minimise(model, lambda: energy_hinge(model(x, (2 * x).sin()), model(x, x.cos()), m).mean(), 50, Adam(1e-2))
        assert bool(model.last.weight.detach().abs().max() > 0) is moves


@pytest.mark.system("noise-contrastive-estimation")
@pytest.mark.system("noise-contrastive-estimation", "form")
def test_noise_contrast_is_a_logistic_classification() -> None:
    random = generator(4)
    data, noise = torch.randn(8, generator=random, dtype=DOUBLE), 2 * torch.randn(24, generator=random, dtype=DOUBLE)
    c, p = 0.3, Normal(torch.tensor(0.0, dtype=DOUBLE), torch.tensor(2.0, dtype=DOUBLE))
    real, fake = (noise_contrast(-x.square() / 2 - c, p.log_prob(x), 3.0) for x in (data, noise))
    posterior = [
        (-x.square() / 2 - c).exp() / ((-x.square() / 2 - c).exp() + 3 * p.log_prob(x).exp()) for x in (data, noise)
    ]
    close(noise_contrastive_loss(real, fake, 3.0), -posterior[0].log().mean() - 3 * (1 - posterior[1]).log().mean())
    both, truth = torch.cat([real, fake]), torch.cat([torch.ones(8), torch.zeros(24)]).double()
    close(
        noise_contrastive_loss(real, fake, 3.0),
        nn.functional.binary_cross_entropy_with_logits(both, truth, reduction="sum") / 8,
    )


@pytest.mark.system("noise-contrastive-estimation", "unbiased")
def test_the_gradient_vanishes_at_the_truth() -> None:
    """By quadrature: data N(0, 1), noise N(0, 2²). At c = log √2π both derivatives are 0; at another c they are not."""
    line = torch.linspace(-20, 20, 8001, dtype=DOUBLE)
    p, q = Normal(0.0, 1.0), Normal(torch.tensor(0.0, dtype=DOUBLE), torch.tensor(2.0, dtype=DOUBLE))
    for shift, least in ((0.0, True), (0.2, False)):
        theta = torch.tensor([1.0, math.log(math.sqrt(2 * math.pi)) + shift], dtype=DOUBLE, requires_grad=True)
        g = noise_contrast(-theta[0] * line.square() / 2 - theta[1], q.log_prob(line))
        terms = p.log_prob(line).exp() * -nn.functional.logsigmoid(g)
        terms = terms + q.log_prob(line).exp() * -nn.functional.logsigmoid(-g)
        (slope,) = torch.autograd.grad(torch.trapezoid(terms, line), theta)
        assert bool(slope.abs().max() < 1e-8) is least


@pytest.mark.system("noise-contrastive-estimation", "gaussian")
def test_the_learned_constant_becomes_log_z() -> None:
    """E = a (x − m)²/2 with a, m and c learned from N(1, 0.5²): c tends to log √(2π/a)."""

    class Gaussian(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.m, self.c = (nn.Parameter(torch.tensor([v])) for v in (1.0, 0.0, 0.0))

        def forward(self, x: Tensor) -> Tensor:
            return -self.a * (x - self.m).square() / 2 - self.c

    model, random, noise = Gaussian(), generator(5), Normal(0.5, 1.0)

    def loss() -> Tensor:
        z = torch.randn(2, 2000, generator=random)
        x, other = 1 + 0.5 * z[0], 0.5 + z[1]
        return noise_contrastive_loss(
            noise_contrast(model(x), noise.log_prob(x)), noise_contrast(model(other), noise.log_prob(other))
        )

    minimise(model, loss, 400, Adam(3e-2))
    assert abs(float(model.m.detach()) - 1) < 0.05
    assert abs(float(model.a.detach()) - 4) < 0.4
    assert abs(float(model.c.detach()) - math.log(0.5 * math.sqrt(2 * math.pi))) < 0.05


@pytest.mark.system("energy-collapse")
@pytest.mark.system("energy-collapse", "metric")
def test_the_spread_of_embeddings() -> None:
    codes = torch.randn(5000, 3, generator=generator(6), dtype=DOUBLE) * torch.tensor([1.0, 2.0, 3.0])
    assert abs(float(spread_of(codes)) - 2) < 0.05
    assert spread_of(torch.ones(10, 3)) == 0
    assert spread_of(torch.ones(1, 3)) == 0
