"""Tables and densities: validity, moments, sampling, conditioning, Bayes and independence, against scipy and counts."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats
import torch
from hypothesis import given as example
from hypothesis import settings
from hypothesis import strategies as st
from torch import Tensor

from descend.ops.actions import Categorical
from descend.ops.math.probability import (
    bayes,
    broken_pdf,
    broken_pmf,
    chi_square_test,
    conditional,
    expectation,
    expectation_terms,
    given_columns,
    given_rows,
    independent,
    interval_probability,
    joint_of,
    mean_absolute_deviation,
    mean_deviation,
    probability,
    sample_pdf,
    sample_pmf,
    standard_deviation,
    uniform,
    variance,
    variance_by_moments,
)
from tests.close import close


def t(values: object) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def noise(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def random(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


# Valid distributions


@pytest.mark.system("valid-distributions")
@pytest.mark.system("valid-distributions", "pmf-and-pdf")
@pytest.mark.parametrize(
    ("p", "broken"),
    [
        ([0.15, 0.85], ()),
        ([0.0, 1.0, 0.0], ()),  # certainty
        ([1 / 6] * 6, ()),
        ([0.5, 0.6], ("sum",)),
        ([-0.1, 1.1], ("negative",)),
        ([-0.1, 0.5], ("negative", "sum")),
        ([math.nan, 1.0], ("finite", "sum")),
        ([[0.5, 0.5], [0.5, 0.4]], ("sum",)),  # every row must be one
    ],
)
def test_what_is_a_distribution(p: list[float], broken: tuple[str, ...]) -> None:
    assert broken_pmf(t(p)) == broken
    if broken:
        with pytest.raises(ValueError, match="not a distribution"):
            sample_pmf(t(p), 3, random())


@pytest.mark.system("valid-distributions")
@pytest.mark.system("valid-distributions", "pmf-and-pdf", "interval")
def test_densities_and_intervals_against_scipy() -> None:
    def falling(x: Tensor) -> Tensor:
        return torch.where(x >= 0, 2 * (-2 * x).exp(), 0.0)

    assert broken_pdf(falling, 0.0, math.inf) == ()
    assert broken_pdf(lambda x: 2 * falling(x), 0.0, math.inf) == ("sum",)
    assert broken_pdf(lambda x: 1.5 - x, 0.0, 2.0) == ("negative",)  # its integral is 1
    theirs = scipy.stats.expon(scale=0.5)
    for low, high in ((0.0, 0.3), (0.1, 2.0), (0.5, math.inf)):
        close(t(interval_probability(falling, low, high)), t(theirs.cdf(high) - theirs.cdf(low)))
    assert interval_probability(falling, 0.7, 0.7) == 0.0  # a single point


@pytest.mark.system("valid-distributions")
@pytest.mark.system("valid-distributions", "sampling")
def test_frequencies_converge() -> None:
    """VOM 3.1: the empirical frequencies of a die, a loaded die and a density approach their probabilities."""
    for p in (uniform(6), t([0.1, 0.1, 0.1, 0.1, 0.1, 0.5]), t([0.0, 1.0, 0.0])):
        seen = torch.bincount(sample_pmf(p, 20_000, random()), minlength=len(p)) / 20_000
        assert bool(((seen - p).abs() <= 4 * (p * (1 - p) / 20_000).sqrt()).all())
    x = sample_pdf(lambda x: 2 * x, 0.0, 1.0, 5000, random())  # a triangle
    assert scipy.stats.kstest(x.numpy(), lambda v: np.square(v)).pvalue > 0.01
    assert scipy.stats.kstest(x.numpy(), lambda v: v).pvalue < 1e-6  # and not uniform
    assert bool(((x >= 0) & (x <= 1)).all())


def test_sampling_reaches_the_last_interval_and_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """All of the area lies between the last two of 4097 points; a uniform number rounded to 1 gives the end itself."""
    x = sample_pdf(lambda x: (x == 1).to(x.dtype), 0.0, 1.0, 1000, random())
    assert bool(((x > 1 - 1 / 4096) & (x < 1)).all())
    monkeypatch.setattr(torch, "rand", lambda n, generator, dtype: torch.ones(n, dtype=dtype))
    close(sample_pdf(lambda x: 2 * x, 0.0, 1.0, 3, random()), torch.ones(3, dtype=torch.float64))


@pytest.mark.system("valid-distributions")
@pytest.mark.system("valid-distributions", "logits")
def test_logits_to_sample_argmax_and_log_probability() -> None:
    """VOM 3.8: any reals become a distribution over V outcomes."""
    z = t([2.0, 1.0, 0.1, -3.0])
    p, output = z.softmax(-1), Categorical(z.expand(20_000, 4))
    assert broken_pmf(p) == ()
    assert output.mode()[0] == p.argmax() == 0
    y = torch.arange(4)
    close(Categorical(z.expand(4, 4)).log_prob(y), t(scipy.special.log_softmax(z.numpy()).tolist()))
    seen = torch.bincount(output.sample(random()), minlength=4) / 20_000
    assert bool(((seen - p).abs() <= 4 * (p * (1 - p) / 20_000).sqrt()).all())


# Expectation and spread


@pytest.mark.system("expectation-and-variance")
@pytest.mark.system("expectation-and-variance", "table-and-sample", "three-spreads", "both-formulas")
@example(n=st.integers(1, 8), seed=st.integers(0, 99))
@settings(deadline=None, max_examples=25, derandomize=True)
def test_moments_equal_numpy(n: int, seed: int) -> None:
    x, p = noise(3, n, seed=seed), noise(3, n, seed=seed + 1).softmax(-1)
    for row in range(3):
        mean = np.average(x[row].numpy(), weights=p[row].numpy())
        close(expectation(x, p)[row], t(mean))
        close(variance(x, p)[row], t(np.cov(x[row].numpy(), aweights=p[row].numpy(), ddof=0)))
        close(mean_absolute_deviation(x, p)[row], t(np.average(np.abs(x[row].numpy() - mean), weights=p[row].numpy())))
    close(expectation_terms(x, p).sum(-1), expectation(x, p))
    close(variance_by_moments(x, p) + 1, variance(x, p) + 1)
    close(standard_deviation(x, p) ** 2, variance(x, p))
    assert mean_deviation(x, p).abs().max() < 1e-12
    close(variance(x, uniform(n).expand(3, n)), x.var(-1, correction=0))  # population form
    assert bool((mean_absolute_deviation(x, p) <= standard_deviation(x, p) + 1e-12).all())


@pytest.mark.system("expectation-and-variance")
@pytest.mark.system("expectation-and-variance", "three-spreads")
def test_the_numbers_of_the_book() -> None:
    b, half = t([0.0, 10.0]), uniform(2)
    assert [f(b, half).item() for f in (mean_deviation, mean_absolute_deviation, variance)] == [0.0, 5.0, 25.0]
    assert standard_deviation(b, half) == 5
    close(variance(t([4.0, 5.0, 6.0]), uniform(3)), t(2 / 3))
    assert variance(t([5.0]), uniform(1)) == 0


@pytest.mark.system("expectation-and-variance")
@pytest.mark.system("expectation-and-variance", "dependent-linearity")
@example(a=st.floats(-5, 5), b=st.floats(-5, 5), seed=st.integers(0, 99))
@settings(deadline=None, max_examples=20, derandomize=True)
def test_expectation_is_linear_also_for_dependent_variables(a: float, b: float, seed: int) -> None:
    p, x = noise(6, seed=seed).softmax(-1), noise(6, seed=seed + 1)
    y = x**2 + x  # a function of x: as dependent as can be
    close(expectation(a * x + b * y, p) + 100, a * expectation(x, p) + b * expectation(y, p) + 100)


@pytest.mark.system("expectation-and-variance")
def test_variance_adds_only_for_independent_variables() -> None:
    x, p = t([1.0, 2.0, 6.0]), t([0.2, 0.5, 0.3])
    pairs, chances = (x[:, None] + x).flatten(), torch.outer(p, p).flatten()  # X + Y, independent
    close(variance(pairs, chances), 2 * variance(x, p))
    close(variance(x + x, p), 4 * variance(x, p))  # X + X


# Conditioning


@pytest.mark.system("conditional-probability-and-bayes")
@pytest.mark.system("conditional-probability-and-bayes", "conditional")
def test_events_of_a_die() -> None:
    """VOM 3.12: P(even | at least 4) = 2/3."""
    face, p = torch.arange(1, 7), uniform(6)
    even, large = face % 2 == 0, face >= 4
    close(probability(even, p), t(0.5))
    close(conditional(even, large, p), t(2 / 3))
    close(conditional(large, even, p) * probability(even, p), conditional(even, large, p) * probability(large, p))
    with pytest.raises(ValueError, match="impossible"):
        conditional(even, face > 6, p)


@pytest.mark.system("conditional-probability-and-bayes")
@pytest.mark.system("conditional-probability-and-bayes", "conditional", "bayes")
@example(a=st.integers(1, 5), b=st.integers(1, 5), seed=st.integers(0, 99))
@settings(deadline=None, max_examples=25, derandomize=True)
def test_bayes_is_the_conditional_of_the_joint_table(a: int, b: int, seed: int) -> None:
    joint = noise(a * b, seed=seed).softmax(-1).view(a, b)
    prior, likelihood = joint.sum(1), given_rows(joint)
    assert broken_pmf(likelihood) == ()
    close(joint_of(prior, likelihood), joint)
    posterior = bayes(prior, likelihood)
    close(posterior, given_columns(joint))
    assert broken_pmf(posterior.mT) == ()
    close(posterior * joint.sum(0), likelihood * prior[:, None])  # P(A|B) P(B) = P(B|A) P(A)
    row, column = torch.arange(a).repeat_interleave(b), torch.arange(b).repeat(a)
    for i in range(a):
        for j in range(b):
            close(posterior[i, j], conditional(row == i, column == j, joint.flatten()))


@pytest.mark.system("conditional-probability-and-bayes")
@pytest.mark.system("conditional-probability-and-bayes", "bayes")
def test_updates_of_a_prior() -> None:
    prior, likelihood = t([0.01, 0.99]), t([[0.9, 0.1], [0.05, 0.95]])  # a rare thing and a good test
    close(bayes(prior, likelihood)[0, 0], t(0.009 / (0.009 + 0.0495)))
    once = bayes(prior, likelihood)[:, 0]
    twice = bayes(once, likelihood)[:, 0]
    both = bayes(prior, likelihood[:, :1] ** 2)[:, 0]
    close(twice, both)  # two sightings one after the other are one of both
    fair, cards = uniform(6), uniform(52)
    face = torch.arange(1, 7)
    of_die = bayes(fair, torch.stack([face >= 4, face < 4], 1).double())[:, 0]
    close(of_die[face % 2 == 0].sum(), conditional(face % 2 == 0, face >= 4, fair))
    suit = torch.arange(52) % 4
    of_card = bayes(cards, torch.stack([suit == 0, suit != 0], 1).double())[:, 0]
    close(of_card[suit <= 1].sum(), t(1.0))  # a heart is red


@pytest.mark.system("conditional-probability-and-bayes")
@pytest.mark.system("conditional-probability-and-bayes", "exact-independence")
def test_exact_independence() -> None:
    """VOM 3.13: coins are independent, red and heart are not."""
    assert independent(torch.outer(uniform(2), uniform(2)))
    assert independent(torch.outer(t([0.2, 0.8]), t([0.1, 0.3, 0.6])))
    red_heart = t([[0.25, 0.25], [0.0, 0.5]])  # rows: red, black; columns: heart, other
    assert not independent(red_heart)
    close(given_columns(red_heart)[0, 0], t(1.0))
    table = torch.outer(t([0.2, 0.8]), t([0.5, 0.5]))
    close(given_columns(table), t([0.2, 0.8])[:, None].expand(2, 2))  # P(A|B) = P(A)


@pytest.mark.system("conditional-probability-and-bayes")
@pytest.mark.system("conditional-probability-and-bayes", "sampled-independence")
def test_independence_of_samples_against_scipy() -> None:
    def counts(joint: Tensor, n: int) -> Tensor:
        drawn = sample_pmf(joint.flatten(), n, random(1))
        return torch.bincount(drawn, minlength=joint.numel()).view(joint.shape)

    coins = counts(torch.outer(t([0.3, 0.7]), t([0.2, 0.5, 0.3])), 5000)
    cards = counts(t([[0.25, 0.25], [0.02, 0.48]]), 500)
    for table in (coins, cards):
        statistic, chance = chi_square_test(table)
        theirs = scipy.stats.chi2_contingency(table.numpy(), correction=False)
        close(t(statistic), t(theirs.statistic))
        close(t(chance), t(theirs.pvalue))
    assert chi_square_test(coins)[1] > 0.05
    assert chi_square_test(cards)[1] < 1e-6
    with pytest.raises(ValueError, match="empty"):
        chi_square_test(torch.tensor([[1, 0], [2, 0]]))
