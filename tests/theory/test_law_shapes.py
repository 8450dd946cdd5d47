"""A power law, a line and an exponential, told apart."""

from __future__ import annotations

import math

import numpy as np
import pytest

from descend.errors import Mistake
from descend.theory.law_shapes import decay, exponential, fit_shapes, power, ratio
from tests.close import close

X = np.geomspace(1.0, 60.0, 12).tolist()


@pytest.mark.system("power-law-versus-exponential", "forms")
@pytest.mark.system("power-law-versus-exponential")
def test_only_the_power_law_has_no_scale() -> None:
    for f, scale_free in ((lambda x: power(x, 10, -0.1), True), (lambda x: power(x, 3, 1.0), True)):
        assert (abs(ratio(f, 1.0, 10) - ratio(f, 1e6, 10)) < 1e-12) is scale_free
    for f in (lambda x: exponential(x, 2, 0.9), lambda x: decay(x, 10.0)):
        assert abs(ratio(f, 1.0, 10) - ratio(f, 20.0, 10)) > 0.1
    close(exponential(7.0, 1.0, math.exp(-1 / 10)), decay(7.0, 10.0))
    close(ratio(lambda x: power(x, 10, -0.1), 5.0, 10), 10**-0.1)


@pytest.mark.system("power-law-versus-exponential", "selection")
@pytest.mark.parametrize(
    ("name", "truth"),
    [
        ("power", lambda x: power(x, 10, -0.3)),
        ("line", lambda x: power(x, 2, 1.0)),
        ("exponential", lambda x: exponential(x, 5, 0.95)),
    ],
)
def test_the_form_that_made_the_data_is_found(name: str, truth: object) -> None:
    """With 2% of noise, 19 times of 20 or more: the line has one number less than the power law that holds it."""
    right = 0
    for seed in range(20):
        random = np.random.default_rng(seed)
        y = [truth(x) * math.exp(0.02 * random.standard_normal()) for x in X]  # type: ignore[operator]
        right += fit_shapes(X, y)[0].name == name
    assert right >= (17 if name == "line" else 20)


def test_the_fitted_numbers_are_those_of_the_form() -> None:
    best = fit_shapes(X, [power(x, 10, -0.1) for x in X])[0]
    close([best.a, best.b, best(30.0)], [10.0, -0.1, power(30.0, 10, -0.1)])
    with pytest.raises(Mistake, match="at least 5"):
        fit_shapes(X[:3], X[:3])
    with pytest.raises(Mistake, match="at or below 0"):
        fit_shapes(X, [0.0, *X[1:]])
