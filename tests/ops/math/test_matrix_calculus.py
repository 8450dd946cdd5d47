"""The identities against autograd and finite differences, for random inputs and a matrix that is not symmetric."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from descend.ops.math.calculus import Function, gradient, gradient_error
from descend.ops.math.matrix_calculus import (
    half_squared_residual,
    half_squared_residual_gradient,
    linear,
    linear_gradient,
    norm_gradient,
    quadratic,
    quadratic_gradient,
    squared_norm,
    squared_norm_gradient,
    trace_product,
    trace_product_gradient,
)
from descend.ops.math.vectors import norm
from tests.close import close

pytestmark = pytest.mark.system("matrix-calculus-identities")


def noise(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.system("matrix-calculus-identities", "identities")
@given(n=st.integers(1, 4), m=st.integers(1, 4), seed=st.integers(0, 99))
@settings(deadline=None, max_examples=15, derandomize=True)
def test_every_identity(n: int, m: int, seed: int) -> None:
    x, a, y = noise(n, seed=seed), noise(n, seed=seed + 1), noise(m, seed=seed + 2)
    square, w, b = noise(n, n, seed=seed + 3), noise(m, n, seed=seed + 4), noise(m, n, seed=seed + 5)
    identities: list[tuple[Function, Tensor, Tensor]] = [
        (partial(linear, a=a), x, linear_gradient(x, a)),
        (squared_norm, x, squared_norm_gradient(x)),
        (partial(quadratic, a=square), x, quadratic_gradient(x, square)),
        (norm, x, norm_gradient(x)),
        (partial(trace_product, b=b), w, trace_product_gradient(w, b)),
        (partial(half_squared_residual, x=x, y=y), w, half_squared_residual_gradient(w, x, y)),
    ]
    for f, at, claimed in identities:
        assert claimed.shape == at.shape  # df/dA has the shape of A
        close(claimed, gradient(f, at))
        assert gradient_error(f, at, claimed) < 1e-8


@pytest.mark.system("matrix-calculus-identities", "non-symmetric")
def test_twice_ax_holds_only_for_a_symmetric_matrix() -> None:
    """VOM 2.6: A = [[1, 2], [0, 3]], x = [1, 1]: (A + Aᵀ)x = [4, 8], 2Ax = [6, 6]."""
    a, x = torch.tensor([[1.0, 2.0], [0.0, 3.0]]), torch.ones(2)
    assert quadratic(x, a) == 6
    assert quadratic_gradient(x, a).tolist() == [4.0, 8.0] != (2 * a @ x).tolist()
    a, x = noise(3, 3), noise(3, seed=1)
    close(quadratic_gradient(x, a + a.mT), 2 * (a + a.mT) @ x)


@pytest.mark.system("matrix-calculus-identities", "norm-at-zero")
def test_the_norm_has_unit_gradient_and_none_at_zero() -> None:
    x = torch.tensor([3.0, 4.0])
    close(norm_gradient(x), torch.tensor([0.6, 0.8]))
    close(norm_gradient(100 * x), norm_gradient(x))
    assert (squared_norm(x), squared_norm_gradient(x).tolist()) == (25, [6.0, 8.0])
    with pytest.raises(ValueError, match="no gradient"):
        norm_gradient(torch.zeros(2))
