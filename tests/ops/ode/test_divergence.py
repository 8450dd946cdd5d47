"""Traces of Jacobians: exact against torch.func, Hutchinson's mean and variance, and how many passes each takes."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from descend.ops.ode.divergence import draw_signs, estimate_divergence, exact_divergence, pull_back
from tests.close import close

pytestmark = pytest.mark.system("hutchinson-trace")
DOUBLE = torch.float64
A = torch.tensor([[0.2, -1.0, 0.3], [0.5, -0.4, 0.0], [0.1, 0.2, -0.3]], dtype=DOUBLE)


def linear(z: Tensor) -> Tensor:
    return z @ A.T


def net(size: int) -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(size, 16), nn.Tanh(), nn.Linear(16, size)).double()


def test_exact_trace_is_that_of_the_jacobian() -> None:
    f, z = net(4), torch.randn(6, 4, dtype=DOUBLE)
    v, trace = exact_divergence(f, z)
    jacobian = torch.func.vmap(torch.func.jacrev(f))(z)
    close(trace, jacobian.diagonal(dim1=1, dim2=2).sum(1))
    close(v, f(z))


@pytest.mark.system("hutchinson-trace", "unbiased")
def test_estimates_over_all_signs_and_their_variance() -> None:
    """DLN-Hutchinson-unbiased: mean −0.5 = the trace, variances 0.45 for signs and 1.03 for Gaussian numbers."""
    signs = torch.tensor(list(itertools.product((-1.0, 1.0), repeat=3)), dtype=DOUBLE)
    estimates = estimate_divergence(linear, torch.zeros(8, 3, dtype=DOUBLE), signs)[1]
    close(estimates.mean(), torch.tensor(-0.5))
    close(estimates.var(correction=0), torch.tensor(0.45))
    gaussian = torch.randn(200_000, 3, dtype=DOUBLE, generator=torch.Generator().manual_seed(0))
    estimates = estimate_divergence(linear, torch.zeros(200_000, 3, dtype=DOUBLE), gaussian)[1]
    symmetric = (A + A.T) / 2
    close(2 * symmetric.square().sum(), torch.tensor(1.03))
    assert abs(estimates.mean().item() + 0.5) < 4 * (1.03 / 200_000) ** 0.5
    assert abs(estimates.var().item() - 1.03) < 0.03


@pytest.mark.system("hutchinson-trace", "reverse-pass")
def test_one_reverse_pass_gives_the_row_and_not_the_column() -> None:
    """DLN-Hutchinson-vjp: εᵀA, where the text says A ε; the number εᵀAε is the same."""
    eps = torch.tensor([[1.0, 2.0, -1.0]], dtype=DOUBLE)
    z = torch.zeros(1, 3, dtype=DOUBLE, requires_grad=True)
    row = pull_back(linear(z), z, eps, False)
    close(row, torch.tensor([[1.1, -2.0, 0.6]]))
    close(row, eps @ A)
    close((A @ eps.T).T, torch.tensor([[-2.1, -0.3, 0.8]]))
    close(estimate_divergence(linear, z, eps)[1], torch.tensor([-3.5]))


@pytest.mark.system("hutchinson-trace", "passes")
@pytest.mark.parametrize("size", [2, 5, 9])
def test_the_exact_trace_takes_as_many_passes_as_dimensions(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    passes = 0
    grad: Callable[..., tuple[Tensor, ...]] = torch.autograd.grad

    def count(*args: object, **named: object) -> tuple[Tensor, ...]:
        nonlocal passes
        passes += 1
        return grad(*args, **named)

    monkeypatch.setattr(torch.autograd, "grad", count)
    f, z = net(size), torch.randn(3, size, dtype=DOUBLE)
    exact_divergence(f, z)
    assert passes == size
    estimate_divergence(f, z, torch.randn(3, size, dtype=DOUBLE))
    assert passes == size + 1


@pytest.mark.system("hutchinson-trace", "several")
def test_the_mean_of_several_estimates() -> None:
    f, z = net(3), torch.randn(2, 3, dtype=DOUBLE)
    draws = draw_signs(torch.rand(400, 2, 3, dtype=DOUBLE, generator=torch.Generator().manual_seed(0)))
    each = torch.stack([estimate_divergence(f, z, eps)[1] for eps in draws])
    together = estimate_divergence(f, z, draws)[1]
    close(together, each.mean(0))
    exact = exact_divergence(f, z)[1]
    assert ((together - exact).abs() < 4 * each.std(0) / 400**0.5).all()
    assert set(draws.unique().tolist()) == {-1.0, 1.0}


def test_the_trace_can_be_differentiated() -> None:
    f = net(3)
    z, eps = torch.randn(2, 3, dtype=DOUBLE, requires_grad=True), torch.randn(2, 3, dtype=DOUBLE)
    assert torch.autograd.gradcheck(lambda z: exact_divergence(f, z), (z,))
    assert torch.autograd.gradcheck(lambda z: estimate_divergence(f, z, eps), (z,))
    with torch.no_grad():
        assert not exact_divergence(f, z)[1].requires_grad
