from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special
from torch import Tensor

from descend.ops.softmax import (
    jacobian,
    jacobian_times,
    largest_exponent,
    log_softmax,
    log_sum_exp,
    naive_softmax,
    softmax,
    softmin,
)
from tests.close import close

shapes = st.tuples(st.integers(1, 3), st.integers(1, 4), st.integers(1, 5))
cases = given(
    shape=shapes, dim=st.integers(-3, 2), seed=st.integers(0, 99), size=st.sampled_from([1e-3, 1.0, 50.0, 1e4])
)
few = settings(max_examples=25, derandomize=True, deadline=None, database=None)


def drawn(shape: tuple[int, ...], seed: int, size: float = 1.0) -> Tensor:
    return size * torch.randn(shape, generator=torch.Generator().manual_seed(seed)).double()


@pytest.mark.system("softmax")
@pytest.mark.system("softmax", "any-axis", "softmin")
@pytest.mark.system("stable-softmax-and-logsumexp")
@few
@cases
def test_agrees_with_scipy_on_any_axis(shape: tuple[int, ...], dim: int, seed: int, size: float) -> None:
    z = drawn(shape, seed, size)
    close(softmax(z, dim), special.softmax(z.numpy(), axis=dim))
    close(softmin(z, dim), special.softmax(-z.numpy(), axis=dim))
    close(log_softmax(z, dim) - 1, special.log_softmax(z.numpy(), axis=dim) - 1)
    close(log_sum_exp(z, dim), special.logsumexp(z.numpy(), axis=dim))


@pytest.mark.system("softmax")
@pytest.mark.system("softmax", "shift")
@pytest.mark.system("stable-softmax-and-logsumexp")
@few
@cases
def test_sums_to_one_and_ignores_shifts(shape: tuple[int, ...], dim: int, seed: int, size: float) -> None:
    z = drawn(shape, seed, size)
    p = softmax(z, dim)
    close(p.sum(dim), torch.ones_like(p.sum(dim)))
    assert (p >= 0).all()
    close(softmax(z + 3.5, dim), p, loosen=100 * max(1, size / 100))  # z + 3.5 rounds z itself
    close(log_sum_exp(z + 3.5, dim), log_sum_exp(z, dim) + 3.5)
    assert (log_softmax(z, dim) <= 0).all()


@pytest.mark.system("stable-softmax-and-logsumexp")
@pytest.mark.system("stable-softmax-and-logsumexp", "extreme", "log-softmax")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_finite_for_logits_of_1e4(dtype: torch.dtype) -> None:
    """MF-A.79, with gradients; the naive form is NaN there."""
    z = torch.tensor([[1e4, -1e4, 0.0], [-1e4, -1e4, -1e4], [1e4, 1e4, 1e4]], dtype=dtype).requires_grad_()
    for f in (softmax, log_softmax, log_sum_exp, softmin):
        y = f(z)
        (slope,) = torch.autograd.grad(y.sum(), z)
        assert y.isfinite().all(), f.__name__
        assert slope.isfinite().all(), f.__name__
    assert log_softmax(z)[0].tolist() == [0, -2e4, -1e4]  # bounded above by 0, by nothing below
    close(log_sum_exp(z), torch.tensor([1e4, math.log(3) - 1e4, math.log(3) + 1e4], dtype=dtype))
    close(softmax(z)[1], torch.full((3,), 1 / 3, dtype=dtype))
    assert naive_softmax(z)[0].isnan().any()
    assert naive_softmax(z)[1].isnan().all()


@pytest.mark.system("stable-softmax-and-logsumexp")
@pytest.mark.system("stable-softmax-and-logsumexp", "naive")
def test_naive_form_agrees_for_small_logits() -> None:
    z = drawn((4, 5), 1, 3.0)
    close(softmax(z), naive_softmax(z))
    assert math.isfinite(math.exp(largest_exponent(torch.float64)))
    top = largest_exponent(torch.float32)
    assert torch.tensor([top * 0.9999]).exp().isfinite()
    assert torch.tensor([top * 1.0001]).exp().isinf()


@pytest.mark.system("stable-softmax-and-logsumexp")
def test_log_of_an_empty_sum() -> None:
    nothing = torch.full((2, 3), -math.inf)
    assert log_sum_exp(nothing).tolist() == [-math.inf, -math.inf]
    half = torch.tensor([-math.inf, 0.0, 0.0])
    close(log_sum_exp(half), torch.tensor(math.log(2)))
    assert softmax(half).tolist() == [0, 0.5, 0.5]
    assert log_sum_exp(torch.tensor([math.inf, 0.0])) == math.inf


@pytest.mark.system("softmax")
@pytest.mark.system("stable-softmax-and-logsumexp")
def test_gradcheck() -> None:
    z = drawn((2, 3, 4), 2).requires_grad_()
    for f in (softmax, softmin, log_softmax, log_sum_exp):
        for dim in (0, 1, -1):
            assert torch.autograd.gradcheck(lambda z: f(z, dim), z)


@pytest.mark.system("softmax")
@pytest.mark.system("softmax", "jacobian")
def test_jacobian() -> None:
    """Symmetric, rows add to 0, positive semidefinite; J v without J."""
    z, v = drawn((3, 5), 3), drawn((3, 5), 4)
    p = softmax(z)
    j = jacobian(p)
    for row in range(3):
        close(j[row], torch.autograd.functional.jacobian(softmax, z[row]))
    close(j, j.mT)
    assert j.sum(-1).abs().max() < 1e-15
    assert torch.linalg.eigvalsh(j).min() > -1e-15
    close(jacobian_times(p, v), (j @ v[..., None])[..., 0])
    z.requires_grad_()
    (back,) = torch.autograd.grad(softmax(z), z, v)
    close(jacobian_times(p, v), back)


@pytest.mark.system("softmax")
@pytest.mark.system("softmax", "any-axis")
def test_columns_are_examples_in_mf() -> None:
    z = drawn((4, 3), 5)
    close(softmax(z, dim=0), softmax(z.T).T)


@pytest.mark.system("softmax")
@pytest.mark.system("softmax", "amplification")
@few
@given(seed=st.integers(0, 999), size=st.sampled_from([0.1, 1.0, 10.0]))
def test_differences_shrink_and_ratios_grow(seed: int, size: float) -> None:
    """VOM 3.8 says that differences grow: |p_i − p_j| ≤ |z_i − z_j|/2, but p_i/p_j = e^{z_i − z_j}."""
    z = drawn((6,), seed, size)
    p = softmax(z)
    of_p, of_z = (x[:, None] - x[None] for x in (p, z))
    assert (of_p.abs() <= of_z.abs() / 2 + 1e-15).all()
    close((p[:, None] / p[None]).log(), of_z, loosen=10)
    assert (p.argsort() == z.argsort()).all()
