"""Finite differences, the chain rule, directions and the Jacobian against autograd, scipy and the books."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime, linprog
from torch import Tensor
from torch.nn import functional as F

from descend.ops.math.calculus import (
    best_step,
    chain_rule,
    difference_quotients,
    directional,
    gain,
    gradient,
    gradient_error,
    jacobian,
    linear_prediction,
    link_factors,
    log10_combinations,
    numerical_gradient,
    product_rule,
    quotient_rule,
    slope_along,
    steepest,
    steepest_of_linear_budget,
    step_factors,
    sweep,
    walk,
)
from tests.close import close

ROUGH = 1e2  # finite differences keep ten digits of sixteen


def t(values: object) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def noise(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def bowl(p: Tensor) -> Tensor:
    return p.square().sum()


def wave(x: Tensor) -> Tensor:
    return (x.sin() * x.flip(-1).exp()).sum() + x.prod()


# Finite differences


@pytest.mark.system("numerical-and-symbolic-differentiation")
@pytest.mark.system("numerical-and-symbolic-differentiation", "limits")
def test_secant_slopes_approach_the_tangent() -> None:
    """VOM 2.2: ((3+h)² − 9)/h = 6 + h."""
    h = t([1.0, 0.1, 0.01, 0.001])
    close(difference_quotients(torch.square, t(3.0), h), 6 + h)
    h = 10.0 ** -torch.arange(1, 6, dtype=torch.float64)
    error = (difference_quotients(torch.exp, t(0.5), h) - math.exp(0.5)).abs()
    assert bool((error[1:] / error[:-1] - 0.1).abs().max() < 0.005)  # first order: a tenth of h, a tenth of the error


@pytest.mark.system("gradient-and-directional-derivative", "numerical-gradient")
@pytest.mark.system("numerical-and-symbolic-differentiation")
@pytest.mark.system("numerical-and-symbolic-differentiation", "gradient-checker")
@pytest.mark.system("scalar-chain-rule")
@pytest.mark.system("scalar-chain-rule", "agreement")
@pytest.mark.parametrize("shape", [(), (4,), (2, 3)])
def test_numerical_gradient_equals_autograd_and_scipy(shape: tuple[int, ...]) -> None:
    x = noise(*shape)
    f = (lambda x: x.square().sin()) if shape == () else wave
    close(numerical_gradient(f, x), gradient(f, x), loosen=ROUGH)
    assert gradient_error(f, x, gradient(f, x)) < 1e-9
    theirs = approx_fprime(x.flatten().numpy(), lambda v: f(t(v.tolist()).view(shape)).item())
    close(gradient(f, x).flatten(), t(theirs.tolist()), loosen=1e4)  # scipy's are one-sided


@pytest.mark.system("numerical-and-symbolic-differentiation")
@pytest.mark.system("numerical-and-symbolic-differentiation", "gradient-checker")
def test_the_checker_finds_a_wrong_gradient() -> None:
    x = noise(5)
    right = gradient(wave, x)
    assert gradient_error(wave, x, right) < 1e-9
    for wrong in (-right, 1.001 * right, right + t([0, 0, 0, 0, 1e-3]), torch.zeros(5, dtype=torch.float64)):
        assert gradient_error(wave, x, wrong) > 1e-5
    flat = torch.zeros(5, dtype=torch.float64)
    assert gradient_error(lambda x: 0 * x.sum(), x, flat) == 0.0


@pytest.mark.system("numerical-and-symbolic-differentiation")
def test_the_best_step_is_near_the_cube_root_of_epsilon() -> None:
    x = t(1.0)
    h = 10.0 ** -torch.arange(1, 13, dtype=torch.float64)
    error = ((torch.exp(x + h) - torch.exp(x - h)) / (2 * h) - math.e).abs()
    best = h[error.argmin()]
    assert best / 100 < best_step(x) < best * 100
    assert error[[0, -1]].min() > 1e4 * error.min()  # too large, and too small


@pytest.mark.system("numerical-and-symbolic-differentiation")
@pytest.mark.system("numerical-and-symbolic-differentiation", "rules")
@given(seed=st.integers(0, 99))
@settings(deadline=None, max_examples=15, derandomize=True)
def test_product_and_quotient_rules(seed: int) -> None:
    """VOM 2.4, against autograd and finite differences."""
    x = noise(seed=seed).abs() + 0.5
    f, df, g, dg = x.sin(), x.cos(), x.log() + 3, 1 / x
    functions = (lambda x: x.sin() * (x.log() + 3), lambda x: x.sin() / (x.log() + 3))
    for rule, whole in zip((product_rule, quotient_rule), functions, strict=True):
        close(rule(f, df, g, dg), gradient(whole, x))
        close(rule(f, df, g, dg), numerical_gradient(whole, x), loosen=ROUGH)


# The chain rule


@pytest.mark.system("scalar-chain-rule")
@pytest.mark.system("scalar-chain-rule", "per-link-factors")
def test_links_of_the_book() -> None:
    """VOM 2.3: y = (3x + 1)² at 2: links 3 and 14, together 42; a step of 0.001 gives 3 and 14.003."""
    links, x, dx = [lambda x: 3 * x + 1, torch.square], t(2.0), t(0.001)
    assert [v.item() for v in walk(links, x)] == [2.0, 7.0, 49.0]
    slope, factors = chain_rule(links, x)
    assert (slope.item(), factors.tolist()) == (42.0, [3.0, 14.0])
    close(step_factors(links, x, dx), t([3.0, 14.003]), loosen=ROUGH)
    close(step_factors(links, x, dx).prod(), t(42.009), loosen=ROUGH)


@pytest.mark.system("scalar-chain-rule")
@pytest.mark.system("scalar-chain-rule", "per-link-factors")
@given(
    names=st.lists(st.sampled_from(["sin", "exp", "tanh", "sigmoid", "atan", "square"]), min_size=1, max_size=5),
    start=st.floats(-1.0, 1.0),
)
@settings(deadline=None, max_examples=30, derandomize=True)
def test_any_chain_multiplies(names: list[str], start: float) -> None:
    links = [getattr(torch, name) for name in names]
    x = t(start)
    slope, factors = chain_rule(links, x)
    whole = gradient(lambda x: walk(links, x)[-1], x)
    assert len(factors) == len(links)
    close(slope, whole)
    close(factors.prod(), whole)
    close(link_factors(links, x)[0], gradient(links[0], x))


@pytest.mark.system("scalar-chain-rule")
def test_deep_chains_vanish_or_explode() -> None:
    """The amplification view: 30 sigmoids shrink a change at each link, 30 doublings grow it."""
    slope, factors = chain_rule([torch.sigmoid] * 30, t(0.3))
    assert bool((factors <= 0.25).all())
    assert 0 < slope.item() < 0.25**30
    assert chain_rule([lambda x: 2 * x] * 30, t(0.3))[0].item() == 2.0**30


@pytest.mark.system("scalar-chain-rule")
@pytest.mark.system("scalar-chain-rule", "tiny-network")
def test_the_tiny_network() -> None:
    """VOM 2.3, y = v σ(wx + b): dy/dw = v σ' x, one factor more than the text writes."""
    w, x, b, v = 0.7, 1.3, -0.2, 1.5
    slope, factors = chain_rule([lambda w: w * x + b, torch.sigmoid, lambda a: v * a], t(w))
    s = torch.sigmoid(t(w * x + b))
    close(factors, torch.stack([t(x), s * (1 - s), t(v)]))
    close(slope, v * s * (1 - s) * x)


# Gradient and directions


@pytest.mark.system("gradient-and-directional-derivative")
def test_gradients_of_the_books() -> None:
    f = lambda p: p[0] ** 2 + p[0] * p[1] + 3 * p[1] ** 2
    assert gradient(f, t([1.0, 2.0])).tolist() == [4.0, 13.0]
    assert gradient(bowl, t([3.0, 4.0])).tolist() == [6.0, 8.0]
    assert gradient(bowl, t([0.0, 0.0])).tolist() == [0.0, 0.0]
    with torch.no_grad():  # also where gradients are switched off
        assert gradient(bowl, t([3.0, 4.0])).tolist() == [6.0, 8.0]
    assert log10_combinations(10, 1_000_000) == 1_000_000


@pytest.mark.system("gradient-and-directional-derivative")
@pytest.mark.system("gradient-and-directional-derivative", "directional")
@given(seed=st.integers(0, 99), n=st.integers(1, 5))
@settings(deadline=None, max_examples=20, derandomize=True)
def test_directional_derivative_is_a_slope(seed: int, n: int) -> None:
    p, u = noise(n, seed=seed), noise(n, seed=seed + 1)
    slope = directional(wave, p, u)
    close(slope, directional(wave, p, 5 * u))  # only the direction counts
    close(slope, -directional(wave, p, -u))
    h = best_step(p)
    e = u / u.norm()
    close(slope, (wave(p + h * e) - wave(p - h * e)) / (2 * h), loosen=1e4)
    g = gradient(wave, p)
    assert slope.abs() <= g.norm() * (1 + 1e-12)
    close(directional(wave, p, steepest(g)), g.norm())


@pytest.mark.system("gradient-and-directional-derivative")
@pytest.mark.system("gradient-and-directional-derivative", "sweep")
@pytest.mark.parametrize(("f", "p"), [(bowl, [3.0, 4.0]), (wave, [0.4, -0.9])])
def test_a_sweep_of_directions_finds_the_gradient(f: object, p: list[float]) -> None:
    angles, slopes = sweep(f, t(p), 3601)  # type: ignore[arg-type]
    g = gradient(f, t(p))  # type: ignore[arg-type]
    best = angles[slopes.argmax()]
    assert (torch.stack([best.cos(), best.sin()]) - steepest(g)).norm() < math.radians(0.1)
    close(slopes.max(), g.norm(), loosen=1e4)  # half a grid step away: cos 0.05°
    worst = angles[slopes.argmin()]
    assert (torch.stack([worst.cos(), worst.sin()]) + steepest(g)).norm() < math.radians(0.1)  # descent: −∇f


@pytest.mark.system("gradient-and-directional-derivative")
@pytest.mark.system("gradient-and-directional-derivative", "slopes-and-gains")
def test_slopes_are_not_gains() -> None:
    """VOM 2.5.4: 8, 6 and 10 are slopes at (3, 4); whole unit steps gain 9, 7 and 11."""
    p, directions = t([3.0, 4.0]), [t([0.0, 1.0]), t([1.0, 0.0]), t([0.6, 0.8])]
    close(torch.stack([directional(bowl, p, u) for u in directions]), t([8.0, 6.0, 10.0]))
    close(torch.stack([gain(bowl, p, u) for u in directions]), t([9.0, 7.0, 11.0]))
    small = torch.stack([gain(bowl, p, 1e-6 * u) for u in directions]) / 1e-6
    close(small, t([8.0, 6.0, 10.0]), loosen=1e3)
    with pytest.raises(ValueError, match="not a direction"):
        slope_along(p, torch.zeros(2, dtype=torch.float64))


@pytest.mark.system("gradient-and-directional-derivative")
@pytest.mark.system("gradient-and-directional-derivative", "slopes-and-gains")
def test_the_budget_decides_the_direction() -> None:
    """VOM 2.5.4: on the circle (0.6, 0.8); with u1 + u2 = 1 everything goes to y."""
    g = t([6.0, 8.0])
    close(steepest(g), t([0.6, 0.8]))
    assert steepest_of_linear_budget(g).tolist() == [0.0, 1.0]
    assert steepest_of_linear_budget(t([1.0, -3.0, 2.0])).tolist() == [0.0, -1.0, 0.0]
    found = linprog([-6.0, -8.0], A_ub=[[1.0, 1.0]], b_ub=[1.0])  # u ≥ 0
    close(steepest_of_linear_budget(g), t(found.x.tolist()))


# The Jacobian


@pytest.mark.system("jacobian-linear-approximation")
@pytest.mark.system("jacobian-linear-approximation", "jacobian")
def test_the_jacobian_of_the_book() -> None:
    """VOM 2.5.7."""
    f = lambda x: torch.stack([x[0] ** 2 + x[1], x[0] * x[1]])
    x, dx = t([3.0, 2.0]), t([0.1, 0.2])
    assert jacobian(f, x).tolist() == [[6.0, 1.0], [2.0, 3.0]]
    predicted, actual = linear_prediction(f, x, dx)
    close(predicted, t([0.8, 0.8]))
    close(actual, t([0.81, 0.82]))


@pytest.mark.system("jacobian-linear-approximation")
@pytest.mark.system("jacobian-linear-approximation", "jacobian")
@pytest.mark.parametrize(("m", "n"), [(1, 3), (4, 2), (3, 3)])
def test_rows_are_gradients_and_torch_agrees(m: int, n: int) -> None:
    w, x = noise(m, n), noise(n, seed=1)
    f = lambda x: F.softplus(w @ x) * x.sin().sum()
    j = jacobian(f, x)
    assert j.shape == (m, n)
    close(j, torch.autograd.functional.jacobian(f, x))
    for row in range(m):
        close(j[row], gradient(lambda x: f(x)[row], x))
    columns = [(f(x + e) - f(x - e)) / 2e-6 for e in 1e-6 * torch.eye(n, dtype=torch.float64)]
    close(j, torch.stack(columns, 1), loosen=1e3)
    close(jacobian(lambda x: w @ x, x), w)  # a linear map is its own Jacobian


@pytest.mark.system("jacobian-linear-approximation")
@pytest.mark.system("jacobian-linear-approximation", "second-order")
def test_the_error_is_of_second_order() -> None:
    w, x, dx = noise(3, 2), noise(2, seed=1), noise(2, seed=2)
    f = lambda x: (w @ x).tanh()
    errors = []
    for k in range(4, 10):
        predicted, actual = linear_prediction(f, x, dx / 2**k)
        errors.append((predicted - actual).norm().item())
    ratios = [a / b for a, b in pairwise(errors)]
    assert all(3.5 < ratio < 4.5 for ratio in ratios), ratios
