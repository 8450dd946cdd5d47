"""Probability on tables: valid distributions, expectation and spread, conditioning, Bayes, independence.

    PMF            p(x) ≥ 0,  Σ p(x) = 1            certainty: one 1;  ignorance among n: 1/n each
    PDF            f(x) ≥ 0,  ∫ f = 1               P(a ≤ X ≤ b) = ∫_a^b f
    expectation    E[X] = Σ x p(x)                  E[aX + bY] = a E[X] + b E[Y], also for dependent X, Y
    variance       Var X = E[(X − E X)²] = E[X²] − (E X)²          σ = √Var         (population form: no n − 1)
    other spreads  E[X − E X] = 0 always            E|X − E X| has a kink
    conditional    P(A|B) = P(A and B) / P(B)
    Bayes          P(A|B) = P(B|A) P(A) / P(B)      P(B) = Σ_A P(B|A) P(A)
    independent    P(A and B) = P(A) P(B)  ⇔  P(A|B) = P(A)

VOM names Bayes' theorem and gives no formula; here it is the conditional of the joint table P(A) P(B|A). A joint table
is (a, b): a row for each A, a column for each B. From logits, `ops.actions.Categorical` samples, takes the argmax and
gives log-probabilities.

Systems: valid-distributions, expectation-and-variance, conditional-probability-and-bayes
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from scipy.integrate import quad
from torch import Tensor

Density = Callable[[Tensor], Tensor]


# Valid distributions


def uniform(n: int) -> Tensor:
    """1/n each: what one knows of n outcomes when one knows nothing."""
    return torch.full((n,), 1 / n, dtype=torch.float64)


def broken_pmf(p: Tensor, tolerance: float = 1e-6) -> tuple[str, ...]:
    """Why p (.., n) is no distribution: of "finite", "negative", "sum"; () when it is one."""
    faults = {
        "finite": not bool(p.isfinite().all()),
        "negative": bool((p < 0).any()),
        "sum": not bool(((p.sum(-1) - 1).abs() <= tolerance).all()),
    }
    return tuple(name for name, fault in faults.items() if fault)


def interval_probability(f: Density, low: float, high: float) -> float:
    """P(low ≤ X ≤ high) = ∫ f, by adaptive quadrature; the ends may be infinite, but then a narrow peak is missed."""
    return float(quad(lambda x: float(f(torch.tensor(x, dtype=torch.float64))), low, high)[0])


def broken_pdf(f: Density, low: float, high: float, tolerance: float = 1e-6) -> tuple[str, ...]:
    """Why f is no density on low..high: of "negative" (then ∫ |f| > ∫ f), "sum" (∫ f is not 1); () when it is one."""
    area = interval_probability(f, low, high)
    faults = {
        "negative": interval_probability(lambda x: f(x).abs(), low, high) > area + tolerance,
        "sum": abs(area - 1) > tolerance,
    }
    return tuple(name for name, fault in faults.items() if fault)


def sample_pmf(p: Tensor, n: int, random: torch.Generator) -> Tensor:
    """n outcomes 0..len(p)−1: the first whose cumulated probability exceeds a uniform number."""
    faults = broken_pmf(p)
    if faults:
        raise ValueError(f"p is not a distribution: it fails {', '.join(faults)}; normalise it first")
    steps = p.cumsum(-1)
    u = steps[-1] * torch.rand(n, generator=random, dtype=p.dtype)
    return torch.searchsorted(steps, u, right=True)


def sample_pdf(f: Density, low: float, high: float, n: int, random: torch.Generator) -> Tensor:
    """n numbers from the density f on low..high: its cumulated area on 4096 intervals, inverted at uniform numbers."""
    x = torch.linspace(low, high, 4097, dtype=torch.float64)
    area = torch.cat([x.new_zeros(1), torch.cumulative_trapezoid(f(x), x)])
    u = area[-1] * torch.rand(n, generator=random, dtype=torch.float64)
    right = torch.searchsorted(area, u, right=True).clamp(1, len(x) - 1)
    part = (u - area[right - 1]) / (area[right] - area[right - 1])
    return x[right - 1] + part * (x[right] - x[right - 1])


# Expectation and spread


def expectation_terms(x: Tensor, p: Tensor) -> Tensor:
    """x p(x) of each outcome."""
    return x * p


def expectation(x: Tensor, p: Tensor) -> Tensor:
    """E[X] = Σ x p(x) along the last axis; a sample mean has p = 1/n."""
    return expectation_terms(x, p).sum(-1)


def mean_deviation(x: Tensor, p: Tensor) -> Tensor:
    """E[X − E X]: always 0, so it measures nothing."""
    return expectation(x - expectation(x, p).unsqueeze(-1), p)


def mean_absolute_deviation(x: Tensor, p: Tensor) -> Tensor:
    """E|X − E X|: a measure, but not smooth."""
    return expectation((x - expectation(x, p).unsqueeze(-1)).abs(), p)


def variance(x: Tensor, p: Tensor) -> Tensor:
    """E[(X − E X)²]: far outcomes count more, a deviation of 10 as much as 25 of 2."""
    return expectation((x - expectation(x, p).unsqueeze(-1)).square(), p)


def variance_by_moments(x: Tensor, p: Tensor) -> Tensor:
    """E[X²] − (E X)²: the same number; in floats it cancels when the mean is large."""
    return expectation(x.square(), p) - expectation(x, p).square()


def standard_deviation(x: Tensor, p: Tensor) -> Tensor:
    """σ = √Var."""
    return variance(x, p).sqrt()


# Events: truth tables over the outcomes


def probability(event: Tensor, p: Tensor) -> Tensor:
    """P(A) = Σ p(x) over the outcomes x in A; `event` (n) says True for those."""
    return p[event].sum()


def conditional(a: Tensor, b: Tensor, p: Tensor) -> Tensor:
    """P(A|B) = P(A and B) / P(B)."""
    whole = probability(b, p)
    if whole == 0:
        raise ValueError("P(B) = 0: nothing is known given an impossible event; choose a B that can happen")
    return probability(a & b, p) / whole


# Joint tables (a, b)


def given_columns(joint: Tensor) -> Tensor:
    """P(A|B): each column divided by its sum; the column of an impossible B is nan."""
    return joint / joint.sum(0)


def given_rows(joint: Tensor) -> Tensor:
    """P(B|A): each row divided by its sum."""
    return joint / joint.sum(1, keepdim=True)


def joint_of(prior: Tensor, likelihood: Tensor) -> Tensor:
    """P(A and B) = P(A) P(B|A): the prior (a) and the likelihood (a, b), whose rows are distributions of B."""
    return prior[:, None] * likelihood


def bayes(prior: Tensor, likelihood: Tensor) -> Tensor:
    """P(A|B) (a, b): column b is what the prior becomes when b is seen."""
    return given_columns(joint_of(prior, likelihood))


def independent(joint: Tensor, tolerance: float = 1e-9) -> bool:
    """Whether P(A and B) = P(A) P(B) in every cell of the exact table."""
    return bool(((joint - torch.outer(joint.sum(1), joint.sum(0))).abs() <= tolerance).all())


def chi_square_test(counts: Tensor) -> tuple[float, float]:
    """For counted samples (a, b): χ² = Σ (seen − expected)²/expected, and the chance of this or more if independent.

    χ² has (rows − 1)(columns − 1) degrees of freedom; expected = row sum · column sum / n, and none may be 0.
    """
    seen = counts.double()
    expected = torch.outer(seen.sum(1), seen.sum(0)) / seen.sum()
    if bool((expected == 0).any()):
        raise ValueError("a row or column of the counts is empty; leave it out")
    statistic = ((seen - expected).square() / expected).sum()
    freedom = math.prod(size - 1 for size in counts.shape)
    chance = torch.special.gammaincc(torch.tensor(freedom / 2, dtype=torch.float64), statistic / 2)
    return statistic.item(), chance.item()
