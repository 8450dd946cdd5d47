"""Distributions over actions against torch.distributions."""

from __future__ import annotations

import pytest
import torch
from torch.distributions import Categorical as TorchCategorical
from torch.distributions import Independent, Normal, kl_divergence

from descend.ops.actions import Categorical, Gaussian
from tests.close import close


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_categorical() -> None:
    logits = 3 * torch.randn(6, 4, generator=generator(), dtype=torch.float64)
    action = torch.tensor([0, 1, 2, 3, 1, 0])
    ours, theirs = Categorical(logits), TorchCategorical(logits=logits)
    close(ours.log_prob(action), theirs.log_prob(action))
    close(ours.entropy(), theirs.entropy())
    assert torch.equal(ours.mode(), logits.argmax(-1))


def test_gaussian() -> None:
    parameters = torch.randn(5, 6, generator=generator(), dtype=torch.float64)
    action = torch.randn(5, 3, generator=generator(1), dtype=torch.float64)
    mu, log_sigma = parameters[:, :3], parameters[:, 3:]
    ours, theirs = Gaussian(parameters), Independent(Normal(mu, log_sigma.exp()), 1)
    close(ours.log_prob(action), theirs.log_prob(action))
    close(ours.entropy(), theirs.entropy())
    assert torch.equal(ours.mode(), mu)


def test_samples_have_the_distribution() -> None:
    """Within 4 standard errors, from a fixed seed."""
    n = 40_000
    p = torch.tensor([0.1, 0.6, 0.3], dtype=torch.float64)
    drawn = Categorical(p.log().expand(n, 3)).sample(generator())
    share = torch.bincount(drawn, minlength=3) / n
    assert ((share - p).abs() < 4 * (p * (1 - p) / n).sqrt()).all()
    parameters = torch.tensor([2.0, -1.0, 0.5, -0.5])
    x = Gaussian(parameters.expand(n, 4)).sample(generator())
    sigma = parameters[2:].exp()
    assert ((x.mean(0) - parameters[:2]).abs() < 4 * sigma / n**0.5).all()
    assert ((x.std(0) / sigma - 1).abs() < 4 / (2 * n) ** 0.5).all()


def test_the_generator_is_the_only_chance() -> None:
    for pi in (Categorical(torch.zeros(50, 3)), Gaussian(torch.zeros(50, 4))):
        torch.manual_seed(1)
        first = pi.sample(generator(5))
        torch.manual_seed(2)
        assert torch.equal(pi.sample(generator(5)), first)
        assert not torch.equal(pi.sample(generator(6)), first)


@pytest.mark.parametrize("shape", [(1, 2), (16, 3), (300, 7)])
def test_the_first_clock_to_ring_is_a_draw_of_multinomial(shape: tuple[int, int]) -> None:
    """The same random numbers give the same actions, and leave the generator where it was."""
    logits = torch.randn(*shape, generator=torch.Generator().manual_seed(0))
    for seed in range(20):
        ours, theirs = torch.Generator().manual_seed(seed), torch.Generator().manual_seed(seed)
        expected = torch.multinomial(logits.softmax(-1), 1, generator=theirs).squeeze(-1)
        assert torch.equal(Categorical(logits).sample(ours), expected)
        assert torch.equal(torch.rand(3, generator=ours), torch.rand(3, generator=theirs))


@pytest.mark.system("trpo")
def test_divergences_are_those_of_torch() -> None:
    a, b = 2 * torch.randn(2, 6, 4, generator=generator(), dtype=torch.float64)
    torchs = TorchCategorical(logits=a), TorchCategorical(logits=b)
    close(Categorical(a).divergence(Categorical(b)), kl_divergence(*torchs))
    wide = [Independent(Normal(x[:, :2], x[:, 2:].exp()), 1) for x in (a, b)]
    close(Gaussian(a).divergence(Gaussian(b)), kl_divergence(*wide))
    for kind in (Categorical, Gaussian):
        assert kind(a).divergence(kind(a)).abs().max() < 1e-12  # type: ignore[arg-type]
