"""The line search: the step proposed in every situation, the conditions of Wolfe, the minimum of a parabola."""

from __future__ import annotations

import math

import pytest

from descend.optim.line import Point, line_minimum, propose

START = Point(0.0, 0.0, -1.0)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (Point(1.0, 0.0, -0.5), None, 2.0),  # the secant's zero
        (Point(2.0, 0.0, -0.95), None, 20.0),  # ... is at most ten times further
        (Point(2.0, 0.0, -0.01), None, 2.2),  # ... and at least a tenth further
        (Point(3.0, 0.0, -1.0), None, 30.0),  # slopes are equal: no secant
        (Point(3.0, 0.0, -2.0), None, 30.0),  # the slope grows: neither
        (Point(1.0, 0.0, -0.5), Point(3.0, 0.0, 0.5), 2.0),  # inside a bracket
        (Point(1.0, 0.0, -1.0), Point(3.0, 0.0, 1e-4), 2.0),  # too near to its end: the middle
        (Point(1.0, 0.0, -1e-4), Point(3.0, 0.0, 1.0), 2.0),
        (Point(1.0, 0.0, -1.0), Point(3.0, math.inf, math.nan), 2.0),  # where there is no number
    ],
)
def test_the_next_step(low: Point, high: Point | None, expected: float) -> None:
    assert propose(low, high, START) == pytest.approx(expected)


@pytest.mark.parametrize("first", [1e-3, 1.0, 50.0])
def test_a_parabola_is_solved(first: float) -> None:
    at = line_minimum(lambda t: ((t - 2) ** 2, 2 * (t - 2)), 4.0, -4.0, first, c2=1e-9)
    assert at.t == pytest.approx(2.0, abs=1e-6)


@pytest.mark.parametrize("first", [0.01, 1.0, 8.0])
def test_the_conditions_of_wolfe_hold(first: float) -> None:
    """φ(t) ≤ φ(0) + c₁ t φ'(0) and |φ'(t)| ≤ c₂ |φ'(0)|; the point returned was the last one evaluated."""
    tried = []

    def phi(t: float) -> tuple[float, float]:
        tried.append(t)
        return math.cosh(t - 3), math.sinh(t - 3)

    value, slope = phi(0.0)
    at = line_minimum(phi, value, slope, first)
    assert at.value <= value + 1e-4 * at.t * slope
    assert abs(at.slope) <= 0.1 * abs(slope)
    assert tried[-1] == at.t


def test_without_a_fall_it_stays() -> None:
    assert line_minimum(lambda t: (1.0 + t, -1.0), 1.0, -1.0, 1.0) == Point(0.0, 1.0, -1.0)
