"""Planted spikes are found at their place; smooth and noisy curves have none."""

from __future__ import annotations

from collections import deque

import numpy as np
import pytest
from scipy.stats import median_abs_deviation

from descend.metrics.spikes import LEAST, WINDOW, Series, find_limit, find_spikes
from tests.close import close

STEPS = np.arange(1, 1001)
SMOOTH = {
    "power law": 2 + 8 * STEPS**-0.3,
    "exponential": 0.1 + 3 * np.exp(-STEPS / 100),
    "to nothing": np.exp(-STEPS / 20),
    "flat": np.full(1000, 0.6931),
    "zero": np.zeros(1000),
    "a slow rise": 1 + STEPS / 500,
    "waves": 2 + 0.5 * np.sin(STEPS / 30),
    "below nothing": -3 + 5 * STEPS**-0.5,
}


def noisy(seed: int, kind: str) -> np.ndarray:
    """A falling loss with noise of a minibatch."""
    chance = np.random.default_rng(seed)
    draw = {
        "normal": lambda: chance.normal(size=1000),
        "laplace": lambda: chance.laplace(size=1000),
        "exponential": lambda: chance.exponential(size=1000),
        "lognormal": lambda: chance.lognormal(0.0, 0.5, size=1000),
    }[kind]
    return 2 + 3 * STEPS**-0.5 + 0.1 * draw()


@pytest.mark.system("training-monitoring")
def test_the_limit_is_made_of_scipys_deviation() -> None:
    """m + 10 · 1.4826 MAD, or five times as far as the noise went."""
    x = np.random.default_rng(0).uniform(-1, 1, 50)
    m, limit = find_limit(deque(x), floor=1e-9)
    close(m, float(np.median(x)))
    spread = median_abs_deviation(x, scale="normal")
    close(limit, float(np.median(x) + max(10 * spread, 5 * (x.max() - np.median(x)))))


@pytest.mark.system("training-monitoring", "no-false-alarm")
@pytest.mark.parametrize("name", SMOOTH)
def test_a_smooth_curve_has_no_spikes(name: str) -> None:
    values = [float(v) for v in SMOOTH[name]]
    assert find_spikes(values) == []
    if min(values) > 0:
        assert find_spikes(values, logarithm=True) == []


@pytest.mark.system("training-monitoring", "no-false-alarm")
@pytest.mark.parametrize("kind", ["normal", "laplace", "exponential", "lognormal"])
def test_noise_has_no_spikes(kind: str) -> None:
    """20 curves of 1,000 steps."""
    assert [find_spikes(noisy(seed, kind).tolist()) for seed in range(20)] == [[]] * 20


@pytest.mark.system("training-monitoring", "planted-spike")
@pytest.mark.parametrize("kind", ["normal", "laplace", "exponential", "lognormal"])
def test_a_planted_spike_is_found_where_it_is(kind: str) -> None:
    for seed in range(20):
        place = 100 + 40 * seed
        values = noisy(seed, kind)
        values[place] += 5
        assert find_spikes(values.tolist()) == [place]


@pytest.mark.system("training-monitoring", "planted-spike")
def test_norms_are_compared_by_factors() -> None:
    """A hundredfold norm is found at any scale; a doubled one among norms that vary as much is none."""
    for scale in (1e-6, 1.0, 1e6):
        norms = scale * np.random.default_rng(0).lognormal(0.0, 0.3, 300)
        assert find_spikes(norms.tolist(), logarithm=True) == []
        norms[200] *= 100
        assert find_spikes(norms.tolist(), logarithm=True) == [200]


def test_what_was_usual_is_told() -> None:
    series = Series(logarithm=True)
    for _ in range(LEAST):
        assert series.observe(2.0) is None
    found = series.observe(50.0)
    assert found is not None
    assert found.value == 50
    close(found.usual, 2.0)


def test_nothing_is_usual_at_the_beginning() -> None:
    assert find_spikes([1.0] * (LEAST - 1) + [100.0]) == []
    assert find_spikes([1.0] * LEAST + [100.0]) == [LEAST]


def test_a_new_level_that_stays_is_usual_soon() -> None:
    found = find_spikes([1 + 0.01 * (i % 2) for i in range(100)] + [50.0] * 200)
    assert found[0] == 100
    assert len(found) < 10
    assert found == list(range(100, 100 + len(found)))


def test_a_norm_of_zero_is_left_out() -> None:
    assert find_spikes([0.0, 1.0] * 50, logarithm=True) == []
    assert len(Series().values) == 0
    assert Series().values.maxlen == WINDOW
