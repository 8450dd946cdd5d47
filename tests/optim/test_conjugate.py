"""Conjugate gradients: N steps, conjugacy, scipy; and the non-linear forms on quadratics and a network."""

from __future__ import annotations

from itertools import islice, pairwise

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse.linalg
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from descend.optim.conjugate import FletcherReeves, PolakRibiere, cg_steps, conjugate_gradient
from descend.optim.line import line_minimum
from descend.optim.trajectory import quadratic, rosenbrock, trajectory
from tests.close import close
from tests.optim.problems import descend, problem

SLUG = "conjugate-gradient"


def system(n: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    random = torch.Generator().manual_seed(seed)
    m = torch.randn(n, n, generator=random, dtype=torch.float64)
    eye = torch.eye(n, dtype=torch.float64)
    return m @ m.T / n + eye, torch.randn(n, generator=random, dtype=torch.float64)


@pytest.mark.system("conjugate-gradient", "n-steps")
@pytest.mark.system(SLUG)
@settings(max_examples=15, derandomize=True, deadline=None)
@given(st.integers(1, 12), st.integers(0, 100))
def test_n_steps_solve_and_the_directions_are_conjugate(n: int, seed: int) -> None:
    a, b = system(n, seed)
    steps = list(islice(cg_steps(lambda v: a @ v, b), n))
    close(steps[-1].x, torch.linalg.solve(a, b))
    p = torch.stack([step.direction for step in steps])
    products = p @ a @ p.T
    assert (products - products.diag().diag()).abs().max() < 1e-8
    for step in steps:
        assert (b - a @ step.x - step.residual).abs().max() < 1e-9


@pytest.mark.system("conjugate-gradient", "matrix-free")
@pytest.mark.system(SLUG)
def test_against_scipy_with_products_only() -> None:
    a, b = system(40, 0)
    operator = scipy.sparse.linalg.LinearOperator((40, 40), matvec=lambda v: a.numpy() @ v)
    theirs, _ = scipy.sparse.linalg.cg(operator, b.numpy(), rtol=1e-12)
    close(conjugate_gradient(lambda v: a @ v, b, tolerance=1e-12), torch.tensor(theirs))
    few = conjugate_gradient(lambda v: a @ v, b, most=12)
    assert (a @ few - b).norm() < 1e-3 * b.norm(), "far fewer than N steps are usually enough"


@pytest.mark.system(SLUG)
def test_it_stops_at_negative_curvature_and_at_zero() -> None:
    b = torch.ones(2, dtype=torch.float64)
    assert not list(cg_steps(lambda v: -v, b))
    assert not conjugate_gradient(lambda v: v, torch.zeros(2)).any()


@pytest.mark.system("conjugate-gradient", "non-linear")
@pytest.mark.system(SLUG)
@pytest.mark.parametrize("method", [FletcherReeves, PolakRibiere])
def test_on_a_quadratic_the_non_linear_form_is_the_linear_one(method: type) -> None:
    a, b = system(5, 3)
    path = trajectory(method, quadratic(a, b), torch.zeros(5, dtype=torch.float64), 5)
    linear = torch.stack([step.x for step in islice(cg_steps(lambda v: a @ v, b), 5)])
    close(path.theta[1:], linear, loosen=10)  # the line search rounds too
    assert len(path.losses) <= 16


@pytest.mark.system(SLUG)
@pytest.mark.parametrize("method", [FletcherReeves, PolakRibiere])
def test_rosenbrock_as_scipy(method: type) -> None:
    start = torch.tensor([-1.2, 1.0], dtype=torch.float64)
    found = trajectory(method, rosenbrock, start, 60)
    theirs = scipy.optimize.minimize(
        scipy.optimize.rosen, start.numpy(), jac=scipy.optimize.rosen_der, method="CG", options={"gtol": 1e-9}
    )
    close(found.theta[-1], torch.tensor(theirs.x), loosen=1e3)  # scipy stops at its own tolerance
    assert len(found.losses) < 5 * theirs.nfev
    close(rosenbrock(start), torch.tensor(scipy.optimize.rosen(start.numpy())))


@pytest.mark.system("conjugate-gradient", "non-linear")
@pytest.mark.system(SLUG)
@pytest.mark.parametrize("method", [FletcherReeves, PolakRibiere])
def test_a_small_network_on_the_full_batch(method: type) -> None:
    model, x, y = problem()
    losses = descend(method(model.parameters(), inner=3), lambda: (model(x) - y).square().mean(), 12)
    assert losses[-1] < 1e-4 * losses[0]
    assert all(b <= a for a, b in pairwise(losses)), "the loss never rises"


@pytest.mark.system(SLUG)
@settings(max_examples=25, derandomize=True, deadline=None)
@given(st.floats(-3, 3), st.floats(0.05, 20), st.floats(1e-4, 1e3))
def test_the_line_search_ends_where_the_slope_is_small(shift: float, width: float, first: float) -> None:
    """√(1 + w (t − 5)²) + a wave: not convex, but falling at 0."""

    def phi(t: float) -> tuple[float, float]:
        root = np.sqrt(1 + width * (t - 5) ** 2)
        return root + 0.1 * np.cos(t + shift), width * (t - 5) / root - 0.1 * np.sin(t + shift)

    value, slope = phi(0.0)
    if slope > -0.2:
        return
    found = line_minimum(phi, value, slope, first)
    assert found.value <= value + 1e-4 * found.t * slope
    assert abs(found.slope) <= 0.1 * abs(slope)
