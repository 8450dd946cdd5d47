"""Products, linearity, rank and null space against torch and scipy."""

from __future__ import annotations

import pytest
import scipy.linalg
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from descend.ops.math.matrices import (
    addition,
    broken_linearity,
    colliding,
    column_view,
    coordinates,
    frobenius,
    frobenius_by_singular_values,
    frobenius_by_trace,
    from_coordinates,
    independent,
    invertible,
    is_linear,
    null_space,
    product,
    product_by_columns,
    rank,
    row_view,
    scaling,
    symmetric,
)
from tests.close import close


def t(values: object) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def noise(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


# Products


@pytest.mark.system("matrix-products")
@pytest.mark.system("matrix-products", "two-views", "transpose")
@given(m=st.integers(1, 5), n=st.integers(1, 5), p=st.integers(1, 5), seed=st.integers(0, 99))
@settings(deadline=None, max_examples=25, derandomize=True)
def test_all_views_equal_torch(m: int, n: int, p: int, seed: int) -> None:
    a, b, x = noise(m, n, seed=seed), noise(n, p, seed=seed + 1), noise(n, seed=seed + 2)
    terms, y = row_view(a, x)
    parts, y_by_columns = column_view(a, x)
    close(y, a @ x)
    close(y_by_columns, a @ x)
    assert torch.equal(terms.mT, parts)  # the same numbers, grouped by rows or by columns
    terms, c = product(a, b)
    parts, c_by_columns = product_by_columns(a, b)
    close(c, a @ b)
    close(c_by_columns, a @ b)
    assert (terms.shape, parts.shape) == ((m, p, n), (n, m, p))
    assert torch.equal(terms.permute(2, 0, 1), parts)
    close(product(b.mT, a.mT)[1], c.mT)  # (AB)ᵀ = BᵀAᵀ


@pytest.mark.system("matrix-products")
@pytest.mark.system("matrix-products", "transpose")
def test_the_algebra_of_products() -> None:
    a, b, c = noise(3, 3, 3).unbind()
    close(product(product(a, b)[1], c)[1], product(a, product(b, c)[1])[1])
    close(product(a, b + c)[1], product(a, b)[1] + product(a, c)[1])
    assert not torch.allclose(product(a, b)[1], product(b, a)[1])
    assert torch.equal((a + b).mT, a.mT + b.mT)
    assert symmetric(a + a.mT)
    assert not symmetric(a)
    assert not symmetric(noise(2, 3))
    whole = torch.tensor([[1, 2, 3], [4, 5, 6]]), torch.tensor([7, 8, 9])  # VOM 1.3, in integers
    assert row_view(*whole)[0].tolist() == [[7, 16, 27], [28, 40, 54]]
    assert column_view(*whole)[0].tolist() == [[7, 28], [16, 40], [27, 54]]
    assert row_view(*whole)[1].tolist() == column_view(*whole)[1].tolist() == [50, 122]


@pytest.mark.system("matrix-products")
@pytest.mark.system("matrix-products", "frobenius")
def test_frobenius_three_ways() -> None:
    a = noise(4, 3, 5)
    expected = torch.linalg.matrix_norm(a)
    for form in (frobenius, frobenius_by_trace, frobenius_by_singular_values):
        close(form(a), expected)
        assert torch.autograd.gradcheck(form, noise(3, 2).requires_grad_())
    close(frobenius(t([[1.0, 2.0], [3.0, 4.0]])), t(30.0).sqrt())


# Linearity

MATRIX = noise(3, 4)


@pytest.mark.system("linearity-test")
@pytest.mark.system("linearity-test", "rejects")
@pytest.mark.parametrize(
    ("f", "broken"),
    [
        (lambda x: x @ MATRIX.mT, ()),
        (lambda x: torch.zeros_like(x), ()),
        (lambda x: x.flip(-1), ()),
        (lambda x: 1e6 * x.cumsum(-1), ()),
        (lambda x: x.square(), ("scaling", "addition")),
        (lambda x: x + 1, ("zero", "scaling", "addition")),
        (lambda x: x @ MATRIX.mT + 1e-3, ("zero", "scaling", "addition")),
        (torch.relu, ("scaling", "addition")),
        (lambda x: x.softmax(-1), ("zero", "scaling", "addition")),
        (lambda x: x.tanh(), ("scaling", "addition")),
        (lambda x: x.sort(-1).values, ("scaling", "addition")),
        (lambda x: x.pow(3).sum(-1) / x.square().sum(-1).clamp_min(1e-300), ("addition",)),  # homogeneous, not additive
    ],
)
def test_the_linearity_test_names_what_fails(f: object, broken: tuple[str, ...]) -> None:
    assert broken_linearity(f, 4) == broken  # type: ignore[arg-type]
    assert is_linear(f, 4) is (not broken)  # type: ignore[arg-type]


@pytest.mark.system("linearity-test")
@pytest.mark.system("linearity-test", "accepts-matrices")
@given(seed=st.integers(0, 999), inputs=st.integers(1, 6), outputs=st.integers(1, 6), shift=st.floats(1e-3, 1e3))
@settings(deadline=None, max_examples=20, derandomize=True)
def test_every_matrix_is_linear_and_every_shift_is_not(seed: int, inputs: int, outputs: int, shift: float) -> None:
    w = noise(outputs, inputs, seed=seed)
    assert is_linear(lambda x: x @ w.mT, inputs)
    assert "zero" in broken_linearity(lambda x: x @ w.mT + shift, inputs)


@pytest.mark.system("linearity-test")
@pytest.mark.system("linearity-test", "both-sides")
def test_the_two_sides_of_the_square() -> None:
    """VOM 1.1: f(2x) = 4x² against 2 f(x) = 2x²; f(x) = x + 1 has f(0) = 1."""
    x = t(3.0)
    assert [side.item() for side in scaling(torch.square, 2.0, x)] == [36.0, 18.0]
    assert [side.item() for side in scaling(lambda x: x + 1, 0.0, x)] == [1.0, 0.0]
    assert [side.item() for side in addition(torch.square, x, x)] == [36.0, 18.0]


# Basis, rank, null space


@pytest.mark.system("basis-rank-and-null-space")
@pytest.mark.system("basis-rank-and-null-space", "null-space")
@given(
    m=st.integers(1, 6), n=st.integers(1, 6), r=st.integers(0, 6), seed=st.integers(0, 99), scale=st.integers(-30, 30)
)
@settings(deadline=None, max_examples=40, derandomize=True)
def test_rank_and_null_space_of_any_matrix(m: int, n: int, r: int, seed: int, scale: int) -> None:
    r = min(m, n, r)
    a = 10.0**scale * noise(m, r, seed=seed) @ noise(r, n, seed=seed + 1)
    assert rank(a) == rank(a.mT) == r
    null = null_space(a)
    assert null.shape == (n - r, n)  # rank + nullity = inputs
    close(null @ null.mT, torch.eye(n - r, dtype=torch.float64))
    assert bool(((a @ null.mT).abs() <= 1e-12 * a.abs().max() * n).all())
    theirs = t(scipy.linalg.null_space(a.numpy()).tolist()).view(n, n - r)
    close(null.mT @ null, theirs @ theirs.mT)  # the same subspace: the same projection


@pytest.mark.system("basis-rank-and-null-space")
@pytest.mark.system("basis-rank-and-null-space", "null-space", "collisions")
def test_inputs_that_collide() -> None:
    """VOM 1.5.1: (1, 0), (0, ½) and (−1, 1) all map to [1, 2] under [[1, 2], [2, 4]]."""
    b = t([[1.0, 2.0], [2.0, 4.0]])
    close(t([[1.0, 0.0], [0.0, 0.5], [-1.0, 1.0]]) @ b.mT, t([[1.0, 2.0]]).expand(3, 2))
    x = t([1.0, 0.0])
    other = colliding(b, x)
    assert other.shape == (1, 2)
    assert (other - x).abs().max() > 0.1
    close(other @ b.mT, t([[1.0, 2.0]]))
    assert not invertible(b)
    assert invertible(torch.eye(2))
    assert not invertible(torch.ones(2, 3))
    assert colliding(torch.eye(3, dtype=torch.float64), noise(3)).shape == (0, 3)  # nothing collides


@pytest.mark.system("basis-rank-and-null-space")
@pytest.mark.system("basis-rank-and-null-space", "independence")
def test_independence() -> None:
    """VOM 1.1: [2, 3] depends on the standard basis."""
    assert independent(t([[1.0, 0.0], [0.0, 1.0]]))
    assert not independent(t([[1.0, 0.0], [0.0, 1.0], [2.0, 3.0]]))
    assert not independent(t([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0]]))


@pytest.mark.system("basis-rank-and-null-space")
@pytest.mark.system("basis-rank-and-null-space", "round-trip")
def test_coordinates_and_back() -> None:
    basis = t([[1.0, 1.0], [1.0, -1.0]])
    assert coordinates(t([3.0, 4.0]), basis).tolist() == [3.5, -0.5]
    assert from_coordinates(t([3.5, -0.5]), basis).tolist() == [3.0, 4.0]
    v, basis = noise(7, 5), noise(5, 5, seed=1)
    close(from_coordinates(coordinates(v, basis), basis), v)
    close(coordinates(from_coordinates(v, basis), basis), v)
    with pytest.raises(ValueError, match="not a basis"):
        coordinates(t([1.0, 2.0]), t([[1.0, 2.0], [2.0, 4.0]]))


@pytest.mark.system("basis-rank-and-null-space")
def test_the_axes_of_an_ellipse_make_the_pattern_axis_aligned() -> None:
    x = noise(500, 2) * t([5.0, 1.0]) @ t([[0.8, 0.6], [-0.6, 0.8]])
    assert abs(x.mT.corrcoef()[0, 1]) > 0.7
    axes = torch.linalg.eigh(x.mT.cov()).eigenvectors.mT
    assert abs(coordinates(x, axes).mT.corrcoef()[0, 1]) < 1e-12
