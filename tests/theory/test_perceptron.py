"""Distances, margins, separability, and the mistake bound that holds."""

from __future__ import annotations

import pytest
import torch
from sklearn.svm import SVC
from torch import Tensor

from descend.classic.perceptron import learn, learn_through_origin
from descend.theory.perceptron import (
    augment,
    bound,
    bound_through_origin,
    fewest_errors,
    margin,
    proof_quantities,
    radius,
    separable,
    separator,
    signed_distance,
)
from tests.close import close


def t(values: object) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def cloud(n: int, gap: float, seed: int) -> tuple[Tensor, Tensor]:
    """Points of two classes, at least `gap` away from the line through the origin along w = (0.6, 0.8)."""
    x = torch.randn(n, 2, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    w = t([0.6, 0.8])
    y = torch.where(x @ w >= 0, 1.0, -1.0).double()
    return x + gap * y[:, None] * w, y


@pytest.mark.system("hyperplane-distance-and-margin")
@pytest.mark.system("hyperplane-distance-and-margin", "signed-distance")
def test_distance_to_the_plane() -> None:
    w, b = t([3.0, 4.0]), t(-5.0)
    x = torch.randn(6, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    d = signed_distance(x, w, b)
    foot = x - d[:, None] * w / w.norm()
    close(foot @ w + b + 1, torch.ones(6, dtype=torch.float64))  # on the plane (moved off 0 for the comparison)
    close(d.abs(), (x - foot).norm(dim=1))
    close(signed_distance(x, 7 * w, 7 * b), d)
    with pytest.raises(ValueError, match="no hyperplane"):
        signed_distance(x, 0 * w, b)


@pytest.mark.system("hyperplane-distance-and-margin")
@pytest.mark.system("hyperplane-distance-and-margin", "margin-and-radius")
def test_margin_and_radius() -> None:
    x, y = cloud(30, 0.4, seed=1)
    w, b = t([0.6, 0.8]), t(0.0)
    gamma = margin(x, y, w, b)
    assert gamma >= 0.4
    close(gamma, (y * signed_distance(x, w, b)).min())
    close(margin(x, y, 5 * w, 5 * b), gamma)
    close(radius(x), x.square().sum(1).max().sqrt())
    found = separator(x, y)
    assert found is not None
    assert (y * (x @ found[0] + found[1]) >= 1 - 1e-9).all()
    assert margin(x, y, *found) >= 1 / found[0].norm() * (1 - 1e-9)
    widest = SVC(kernel="linear", C=1e6).fit(x, y)  # no separator has a larger margin than the support vectors'
    best = margin(x, y, t(widest.coef_[0]), t(widest.intercept_[0]))
    assert gamma <= best * (1 + 1e-6)
    assert margin(x, y, *found) <= best * (1 + 1e-6)


@pytest.mark.system("hyperplane-distance-and-margin")
@pytest.mark.system("hyperplane-distance-and-margin", "separability")
@pytest.mark.system("xor-and-inseparability")
@pytest.mark.system("xor-and-inseparability", "best-linear")
def test_separability_by_linear_program() -> None:
    corners = t([[0, 0], [0, 1], [1, 0], [1, 1]])
    assert separable(corners, t([-1, -1, -1, 1]))
    assert not separable(corners, t([-1, 1, 1, -1]))
    assert fewest_errors(corners, t([-1, 1, 1, -1])) == 1
    assert fewest_errors(corners, t([-1, 1, 1, 1])) == 0
    assert not separable(t([[1.0], [1.0]]), t([1, -1]))
    separated = [
        labels for labels in range(16) if separable(corners, t([2.0 * (labels >> i & 1) - 1 for i in range(4)]))
    ]
    assert len(separated) == 14  # of the 16 labellings of a square, all but XOR and its opposite


@pytest.mark.system("perceptron-convergence")
@pytest.mark.system("perceptron-convergence", "bound")
@pytest.mark.parametrize("gap", [0.05, 0.2, 0.8])
def test_updates_never_exceed_the_bound(gap: float) -> None:
    for seed in range(5):
        x, y = cloud(40, gap, seed)
        w = t([0.6, 0.8])
        run = learn_through_origin(x, y)
        assert run.converged
        assert 0 < run.updates <= bound_through_origin(x, y, w)
        biased = learn(x, y)
        assert biased.converged
        assert 0 < biased.updates <= bound(x, y, w, t(0.0))


@pytest.mark.system("perceptron-convergence")
@pytest.mark.system("perceptron-convergence", "erratum")
def test_the_printed_bound_is_wrong_and_the_augmented_one_right() -> None:
    x, y = t([[0.1], [0.05]]), t([1.0, -1.0])
    w, b = t([40.0]), t(-3.0)
    run = learn(x, y)
    assert run.updates == 405
    assert (radius(x) / margin(x, y, w, b)) ** 2 < run.updates < bound(x, y, w, b)
    with pytest.raises(ValueError, match="does not separate"):
        bound(x, y, -w, -b)


@pytest.mark.system("perceptron-convergence")
@pytest.mark.system("perceptron-convergence", "proof-quantities")
def test_both_quantities_of_the_proof() -> None:
    x, y = cloud(40, 0.1, seed=3)
    w = t([0.6, 0.8, 0.0])
    run = learn(x, y)
    along, squared = proof_quantities(run.path, w)
    gamma, r = margin(x, y, w[:2], t(0.0)), radius(augment(x))
    assert (along.diff() >= gamma - 1e-9).all()
    assert (squared.diff() <= r**2 + 1e-9).all()
    assert along[-1] >= run.updates * gamma
    assert squared[-1] <= run.updates * r**2


@pytest.mark.system("perceptron-convergence", "sweep")
def test_updates_stay_below_the_bound_over_a_sweep_of_margin_and_radius() -> None:
    """Longer points along the line leave γ alone and raise R; the bound grows as (R/γ)², and no run exceeds it."""
    w, along = t([0.6, 0.8]), t([-0.8, 0.6])
    bounds = {}
    for gap in (0.1, 0.4):
        for stretch in (1.0, 4.0, 16.0):
            found = []
            for seed in range(3):
                x, y = cloud(40, gap, seed)
                x = x + (stretch - 1) * (x @ along)[:, None] * along
                run = learn_through_origin(x, y)
                assert run.converged
                found.append(float(bound_through_origin(x, y, w)))
                assert 0 < run.updates <= found[-1]
            bounds[gap, stretch] = sum(found) / 3
    for gap in (0.1, 0.4):
        assert bounds[gap, 1.0] < bounds[gap, 4.0] < bounds[gap, 16.0]
    assert all(bounds[0.4, s] < bounds[0.1, s] for s in (1.0, 4.0, 16.0))
