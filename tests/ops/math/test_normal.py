"""The normal distribution against scipy, and sums that approach it."""

from __future__ import annotations

import math

import pytest
import scipy.stats
import torch
from torch import Tensor

from descend.ops.math.normal import (
    cumulative,
    density,
    dice_sums,
    dice_table,
    distance_of_sample,
    distance_of_table,
    moments_of_sum,
    neuron_sums,
    sample,
    standardize,
)
from descend.ops.math.probability import broken_pdf, broken_pmf, expectation, interval_probability, uniform, variance
from tests.close import close

pytestmark = pytest.mark.system("normal-distribution-and-clt")


def t(values: object) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


@pytest.mark.system("normal-distribution-and-clt", "density")
def test_density_and_cumulated_equal_scipy() -> None:
    x = torch.linspace(-6, 9, 31, dtype=torch.float64)
    close(density(x, 1.5, 2.0), t(scipy.stats.norm(1.5, 2.0).pdf(x.numpy()).tolist()))
    close(cumulative(x), t(scipy.stats.norm.cdf(x.numpy()).tolist()))
    close(cumulative(t(1.0)), t(interval_probability(density, -math.inf, 1.0)))
    assert broken_pdf(lambda x: density(x, 1.5, 2.0), -math.inf, math.inf) == ()  # the area is 1
    close(t(interval_probability(lambda x: density(x, 5.0, 3.0), 2.0, 8.0)), t(0.6826894921370859))  # one σ
    assert torch.autograd.gradcheck(lambda x: density(x, 1.5, 2.0), x[::6].clone().requires_grad_())


@pytest.mark.system("normal-distribution-and-clt", "standardize")
def test_standardized_samples_have_mean_0_and_variance_1() -> None:
    x = sample(20_000, 3.0, 0.5, torch.Generator().manual_seed(0))
    z = standardize(x, t(3.0), t(0.5))
    assert abs(z.mean()) < 4 / math.sqrt(20_000)
    assert abs(z.var(correction=0) - 1) < 4 * math.sqrt(2 / 20_000)
    own = standardize(x, x.mean(), x.std(correction=0))
    close(own.mean() + 1, t(1.0))
    close(own.var(correction=0), t(1.0))
    assert scipy.stats.kstest(z.numpy(), "norm").pvalue > 0.01
    assert torch.equal(x, sample(20_000, 3.0, 0.5, torch.Generator().manual_seed(0)))


@pytest.mark.system("normal-distribution-and-clt", "dice")
def test_the_table_of_dice() -> None:
    """VOM 3.7: 100 dice are centred at 350, with variance 291.67."""
    face = torch.arange(1, 7, dtype=torch.float64)
    for n in (1, 2, 3, 100):
        x, p = dice_table(n)
        assert broken_pmf(p) == ()
        mean, spread = moments_of_sum(face, uniform(6), n)
        close(expectation(x, p), mean)
        close(variance(x, p), spread)
    x, p = dice_table(2)
    close(p, t([1, 2, 3, 4, 5, 6, 5, 4, 3, 2, 1]) / 36)
    assert (x[0], x[-1]) == (2, 12)
    mean, spread = moments_of_sum(face, uniform(6), 100)
    close(mean, t(350.0))
    close(spread, t(100 * 35 / 12))


@pytest.mark.system("normal-distribution-and-clt", "dice")
def test_dice_become_normal() -> None:
    distances = t([distance_of_table(*dice_table(n)) for n in (1, 2, 4, 16, 64, 256)])
    assert bool((distances.diff() < 0).all())
    assert distances[0] > 0.08
    assert bool((distances[3:-1] / distances[4:] - 2).abs().max() < 0.01)  # 1/√n: four times as many, half


@pytest.mark.system("normal-distribution-and-clt", "neuron-sums")
def test_sampled_sums_become_normal() -> None:
    random = torch.Generator().manual_seed(0)
    face = torch.arange(1, 7, dtype=torch.float64)
    dice, neurons = [], []
    for n in (1, 4, 100):
        mean, spread = moments_of_sum(face, uniform(6), n)
        dice.append(distance_of_sample(dice_sums(n, 4000, random), mean, spread.sqrt()).item())
        w = torch.rand(n, generator=random, dtype=torch.float64) + 0.5
        sums = neuron_sums(w, 4000, random)
        neurons.append(distance_of_sample(sums, w.sum(), w.norm()).item())  # Exp(1) has mean 1 and variance 1
    for found in (dice, neurons):
        assert found[0] > found[1] > found[2]
        assert found[2] < 0.05


@pytest.mark.system("normal-distribution-and-clt", "neuron-sums")
def test_the_distance_is_the_statistic_of_kolmogorov() -> None:
    x = sample(500, 1.0, 2.0, torch.Generator().manual_seed(0))
    for mu in (0.8, 1.0, 1.2):  # the largest gap lies before a step, or after one
        theirs = scipy.stats.kstest(x.numpy(), scipy.stats.norm(mu, 2.0).cdf).statistic
        close(distance_of_sample(x, t(mu), t(2.0)), t(theirs))
    for p in (t([0.1, 0.9]), t([0.9, 0.1])):
        z = standardize(t([0.0, 1.0]), p[1], (p[0] * p[1]).sqrt())
        steps = [
            abs(f - phi)
            for phi, pair in zip(scipy.stats.norm.cdf(z), ([0, p[0]], [p[0], 1]), strict=True)
            for f in pair
        ]
        close(distance_of_table(t([0.0, 1.0]), p), t(float(max(steps))))
