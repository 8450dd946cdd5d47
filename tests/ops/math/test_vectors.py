"""Norms, directions and neighbours: torch's own, the axioms, and the books' claims about angles."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics.pairwise import cosine_similarity
from sklearn.neighbors import NearestNeighbors
from torch import Tensor
from torch.nn import functional as F

from descend.ops.math.vectors import (
    angle,
    broken_axioms,
    cosine,
    cosine_by_sides,
    distance,
    dot,
    dot_by_angle,
    homogeneity,
    nearest_by_cosine,
    nearest_by_distance,
    norm,
    pairwise_cosine,
    unit,
)
from tests.close import close


def t(values: object) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def noise(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


# Norms


@pytest.mark.system("vector-norms")
@pytest.mark.system("vector-norms", "any-order", "distance")
@given(
    p=st.sampled_from([1.0, 1.5, 2.0, 3.0, 7.5, 50.0, math.inf]),
    shape=st.sampled_from([(1,), (5,), (3, 4), (2, 3, 2)]),
    seed=st.integers(0, 99),
)
@settings(deadline=None, max_examples=20, derandomize=True)
def test_equals_torch_for_any_order_and_batch(p: float, shape: tuple[int, ...], seed: int) -> None:
    v, u = noise(*shape, seed=seed), noise(*shape, seed=seed + 100)
    close(norm(v, p), torch.linalg.vector_norm(v, p, dim=-1))
    close(norm(v, p, dim=0), torch.linalg.vector_norm(v, p, dim=0))
    close(distance(u, v, p), torch.linalg.vector_norm(u - v, p, dim=-1))
    close(unit(v, p, dim=0), F.normalize(v, p=p, dim=0))
    assert bool((norm(u + v, p) <= norm(u, p) + norm(v, p) + 1e-12).all())


@pytest.mark.system("vector-norms")
@pytest.mark.system("vector-norms", "large-p")
def test_the_limit_of_large_p_is_the_largest_entry() -> None:
    v = t([3.0, -4.0, 12.0, 11.9])
    lengths = [norm(v, p).item() for p in (1, 2, 4, 16, 64, 1e3, 1e6)]
    assert lengths == sorted(lengths, reverse=True)
    close(norm(v, 1e6), norm(v, math.inf), loosen=1e4)  # the gap is (log 2)/p of the length
    close(norm(1e200 * v, 50), 1e200 * norm(v, 50))  # |v|^50 alone would be infinite


@pytest.mark.system("vector-norms")
@pytest.mark.system("vector-norms", "any-order")
@pytest.mark.parametrize("p", [0.5, 0.0, -1.0, math.nan])
def test_no_norm_below_one(p: float) -> None:
    with pytest.raises(ValueError, match="p ≥ 1"):
        norm(t([1.0, 2.0]), p)
    if 0 < p < 1:  # the formula with p = ½ breaks the triangle inequality
        assert broken_axioms(lambda v: v.abs().pow(p).sum(-1).pow(1 / p), 3) == ("triangle",)


@pytest.mark.system("vector-norms")
@pytest.mark.system("vector-norms", "axiom-checker")
@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, 3.0, math.inf])
def test_norms_pass_the_axioms(p: float) -> None:
    assert broken_axioms(lambda v: norm(v, p), 4) == ()


@pytest.mark.system("vector-norms")
@pytest.mark.system("vector-norms", "axiom-checker")
def test_the_axiom_checker_rejects_what_is_no_norm() -> None:
    """VOM 1.4: ‖v‖ + 1 breaks homogeneity (and f(0) = 0), Σ v_i is zero for [1, −1]."""
    assert broken_axioms(lambda v: norm(v) + 1, 2) == ("positive", "homogeneous")
    assert "positive" in broken_axioms(lambda v: v.sum(-1), 2)
    assert broken_axioms(lambda v: norm(v) ** 2, 2) == ("homogeneous", "triangle")
    assert broken_axioms(lambda v: v[..., 0].abs(), 2) == ("positive",)  # a seminorm: (0, 1) has length 0
    assert broken_axioms(lambda v: v.abs().amin(-1), 3) == ("positive", "triangle")
    f_2v, twice_f = homogeneity(lambda v: norm(v) + 1, 2.0, t([3.0, 4.0]))
    assert (f_2v.item(), twice_f.item()) == (11.0, 12.0)


@pytest.mark.system("vector-norms")
@pytest.mark.system("vector-norms", "unit-vectors")
def test_unit_vectors_and_the_zero_vector() -> None:
    close(unit(t([[3.0, 4.0], [0.0, 0.0]])), t([[0.6, 0.8], [0.0, 0.0]]))
    v = noise(6, 5)
    close(norm(unit(v)), torch.ones(6, dtype=torch.float64))
    close(unit(7.5 * v), unit(v))
    zero = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(unit(zero).sum() + norm(zero), zero)
    close(gradient, t([1.0, 1.0, 1.0]))  # finite: unit is v/1 at 0, and the norm has subgradient 0


@pytest.mark.system("vector-norms")
@pytest.mark.system("dot-product-and-cosine")
def test_gradcheck() -> None:
    u, v = noise(3, 4).requires_grad_(), noise(3, 4, seed=1).requires_grad_()
    for p in (1.0, 2.0, 3.5, math.inf):
        assert torch.autograd.gradcheck(lambda v: norm(v, p), v)
        assert torch.autograd.gradcheck(lambda v: unit(v, p), v)
    for f in (dot, cosine, angle, distance):
        assert torch.autograd.gradcheck(f, (u, v))


# Two vectors


@pytest.mark.system("dot-product-and-cosine")
@pytest.mark.system("dot-product-and-cosine", "angle", "bounds")
def test_cosine_equals_torch_and_the_law_of_cosines() -> None:
    u, v = noise(20, 5), noise(20, 5, seed=1)
    close(dot(u, v), torch.linalg.vecdot(u, v))
    close(cosine(u, v), F.cosine_similarity(u, v, dim=-1))
    close(cosine_by_sides(u, v), cosine(u, v))
    close(dot_by_angle(norm(u), norm(v), angle(u, v)), dot(u, v))
    close(angle(u, v), cosine(u, v).acos())
    close(cosine(3 * u, 0.2 * v), cosine(u, v))  # lengths do not matter
    close(cosine(-u, v), -cosine(u, v))
    assert bool((dot(u, v).abs() <= norm(u) * norm(v)).all())  # Cauchy–Schwarz


@pytest.mark.system("dot-product-and-cosine")
@pytest.mark.system("dot-product-and-cosine", "angle")
def test_angles_of_the_books() -> None:
    a, orthogonal = t([1.0, 2.0, 2.0]), t([2.0, 0.0, -1.0])
    others = torch.stack([3 * a, orthogonal, -2 * a])
    close(angle(a, others).rad2deg(), t([0.0, 90.0, 180.0]))
    close(angle(a, others), t([0.0, math.pi / 2, math.pi]))
    assert dot(a, others).argmax() == 0
    assert dot(a, others).argmin() == 2
    tiny = angle(t([1.0, 0.0]), t([1.0, 1e-9]))  # acos(cos θ) would give 0
    close(tiny, t(1e-9))
    with pytest.raises(ValueError, match="zero vector"):
        angle(a, torch.zeros(3, dtype=torch.float64))
    assert cosine(a, torch.zeros(3, dtype=torch.float64)) == 0


@pytest.mark.system("dot-product-and-cosine")
@pytest.mark.system("dot-product-and-cosine", "aligned-neuron")
def test_a_neuron_is_most_excited_by_its_own_direction() -> None:
    """MF 1.1.2: among inputs of one length, w·x is largest along w."""
    w = noise(6)
    x = 2 * unit(noise(500, 6, seed=1))
    best = 2 * unit(w)
    assert bool((dot(w, x) < dot(w, best)).all())
    close(dot(w, best), 2 * norm(w))


# A table


@pytest.mark.system("dot-product-and-cosine")
@pytest.mark.system("dot-product-and-cosine", "pairwise-matrix")
def test_tables_against_scikit_learn() -> None:
    table, x = noise(30, 4), noise(5, 4, seed=1)
    close(pairwise_cosine(table), t(cosine_similarity(table.numpy()).tolist()))
    for metric, ours in (("cosine", nearest_by_cosine), ("euclidean", nearest_by_distance)):
        theirs = NearestNeighbors(n_neighbors=7, metric=metric).fit(table.numpy()).kneighbors(x.numpy())[1]
        assert ours(x, table, 7).tolist() == theirs.tolist()


@pytest.mark.system("dot-product-and-cosine")
@pytest.mark.system("dot-product-and-cosine", "orders-differ")
def test_the_order_by_cosine_differs_from_the_order_by_distance() -> None:
    """DLN: A = (10, 10) points as B = (1, 1) does, C = (1, −½) is nearer to B."""
    b, table = t([1.0, 1.0]), t([[10.0, 10.0], [1.0, -0.5]])
    assert nearest_by_cosine(b, table, 2).tolist() == [0, 1]
    assert nearest_by_distance(b, table, 2).tolist() == [1, 0]
    unit_table = unit(noise(20, 3))  # on the sphere both orders are one: d² = 2 − 2 cos θ
    x = unit(noise(3, seed=1))
    assert torch.equal(nearest_by_cosine(x, unit_table, 20), nearest_by_distance(x, unit_table, 20))
    words = t([[0.2, 0.8, -0.1], [0.3, 0.7, -0.2], [0.1, 0.9, 0.3], [-0.5, 0.1, 0.6], [-0.4, 0.2, 0.5]])
    assert nearest_by_cosine(words, words, 2).tolist() == [[0, 1], [1, 0], [2, 0], [3, 4], [4, 3]]  # VOM 7.2.1
