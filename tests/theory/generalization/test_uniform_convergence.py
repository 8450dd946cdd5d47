"""Uniform convergence: complexities by enumeration, and bounds that hold in simulation."""

from __future__ import annotations

from itertools import product

import pytest
import torch

from descend.theory.generalization.uniform_convergence import (
    draw_signs,
    finite_class_bound,
    linear_bound,
    linear_rademacher,
    rademacher,
    widest_gap,
)


@pytest.mark.system("uniform-convergence-bounds")
@pytest.mark.system("uniform-convergence-bounds", "rademacher")
def test_simulation_finds_what_enumeration_does() -> None:
    random = torch.Generator().manual_seed(0)
    values = torch.rand(5, 8, generator=random, dtype=torch.float64)
    every = torch.tensor(list(product((-1.0, 1.0), repeat=8)), dtype=torch.float64)
    exact = sum(max(float(s @ h) for h in values) for s in every) / 8 / len(every)
    assert rademacher(values, every) == pytest.approx(exact)
    assert rademacher(values, draw_signs(20_000, 8, random)) == pytest.approx(exact, rel=0.03)
    assert rademacher(values[:1], every) == pytest.approx(0, abs=1e-12)  # one function cannot follow signs


@pytest.mark.system("uniform-convergence-bounds", "linear")
def test_linear_predictors() -> None:
    """Against the supremum over many directions, for every sign in turn; below the bound with max ‖x‖."""
    random = torch.Generator().manual_seed(0)
    x = torch.randn(7, 2, generator=random, dtype=torch.float64)
    every = torch.tensor(list(product((-1.0, 1.0), repeat=7)), dtype=torch.float64)
    turn = torch.linspace(0, 2 * torch.pi, 2001, dtype=torch.float64)
    ball = 3.0 * torch.stack([turn.cos(), turn.sin()], -1)
    exact = linear_rademacher(x, 3.0, every)
    assert rademacher(ball @ x.T, every) == pytest.approx(exact, rel=1e-5)
    mean_square = 3.0 / 7 * float(x.square().sum().sqrt())  # Jensen
    assert exact < mean_square <= linear_bound(x, 3.0)


@pytest.mark.system("uniform-convergence-bounds", "finite", "violations")
@pytest.mark.parametrize("seed", range(3))
def test_a_finite_class_keeps_its_bound(seed: int) -> None:
    """200 independent functions with losses of 0 or 1: the bound at δ = 0.2 is broken in at most a fifth of samples,
    although N = 50 is far less than |H|."""
    random, functions, n, delta = torch.Generator().manual_seed(seed), 200, 50, 0.2
    risks = torch.full((functions,), 0.5, dtype=torch.float64)
    samples = (torch.rand(1000, functions, n, generator=random) < 0.5).double().mean(-1)
    gaps = (samples - risks).abs().amax(-1)
    broken = float((gaps > finite_class_bound(functions, n, delta)).double().mean())
    assert broken <= delta
    assert float((gaps > 0.7 * finite_class_bound(functions, n, delta)).double().mean()) > delta  # not idle


@pytest.mark.system("uniform-convergence-bounds", "symmetrization")
@pytest.mark.parametrize("seed", range(3))
def test_the_widest_gap_is_at_most_twice_the_complexity(seed: int) -> None:
    """Threshold classifiers on uniform inputs with noisy labels, and linear predictors: E sup (R − R_n) ≤ 2 R_n."""
    random, n, sets = torch.Generator().manual_seed(seed), 30, 600
    cuts = torch.linspace(0, 1, 41, dtype=torch.float64)
    x = torch.rand(sets, n, generator=random, dtype=torch.float64)
    flipped = torch.rand(sets, n, generator=random) < 0.2
    y = (x > 0.5) ^ flipped
    losses = ((x[:, None] > cuts[:, None]) != y[:, None]).double()  # (sets, cuts, n)
    risks = 0.2 + 0.6 * (cuts - 0.5).abs()
    gap = float(widest_gap(risks, losses.mean(-1)).mean())
    signs = draw_signs(200, n, random)
    complexity = sum(rademacher(one, signs) for one in losses[:60]) / 60
    assert 0 < gap <= 2 * complexity
    assert gap > 0.3 * complexity  # the same order: the bound says something
    # Linear, ‖w‖ ≤ 1, h(x) = w·x with E x = 0: sup (R − R_n) = ‖mean of x‖
    z = torch.randn(sets, n, 3, generator=random, dtype=torch.float64)
    wide = float(z.mean(1).norm(dim=-1).mean())
    assert wide <= 2 * sum(linear_rademacher(one, 1.0, signs) for one in z[:60]) / 60
