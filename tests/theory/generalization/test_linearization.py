"""The linearised network and its kernel: descent by torch against the closed form."""

from __future__ import annotations

import pytest
import torch
from torch.func import grad

from descend.theory.generalization.linearization import (
    features,
    kernel_descent,
    kernel_flow,
    linearize,
    tangent_kernel,
)
from tests.close import close

UNITS = 9


def network(theta: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    w, b, v = theta[: 2 * UNITS].view(UNITS, 2), theta[2 * UNITS : 3 * UNITS], theta[3 * UNITS :]
    return (x @ w.T + b).tanh() @ v / UNITS**0.5


@pytest.fixture
def setting() -> tuple[torch.Tensor, ...]:
    random = torch.Generator().manual_seed(0)
    theta = torch.randn(4 * UNITS, generator=random, dtype=torch.float64)
    x, new = (torch.randn(n, 2, generator=random, dtype=torch.float64) for n in (6, 4))
    return theta, x, x.prod(-1), new


@pytest.mark.system("ntk-linearization")
@pytest.mark.system("ntk-linearization", "descent")
def test_linearised_descent_is_the_kernel_formula(setting: tuple[torch.Tensor, ...]) -> None:
    theta0, x, y, new = setting
    linear, lr = linearize(network, theta0), 0.5
    slope = grad(lambda t: (linear(t, x) - y).square().mean() / 2)
    kernel, k = (tangent_kernel(network, theta0, at, x) for at in (x, new))
    residual = y - network(theta0, x)
    theta = theta0
    for step in range(1, 41):
        theta = theta - lr * slope(theta)
        if step in (1, 7, 40):
            close(linear(theta, x) - network(theta0, x), kernel_descent(kernel, kernel, residual, lr, step))
            close(linear(theta, new) - network(theta0, new), kernel_descent(k, kernel, residual, lr, step))
    close(kernel_descent(k, kernel, residual, lr, 1e9), k @ torch.linalg.solve(kernel, residual), loosen=100)


@pytest.mark.system("ntk-linearization", "linear", "kernel")
def test_tangent_at_the_start_and_affine(setting: tuple[torch.Tensor, ...]) -> None:
    theta0, x, _, _ = setting
    linear = linearize(network, theta0)
    step = torch.randn(len(theta0), generator=torch.Generator().manual_seed(1)).double()
    close(linear(theta0, x), network(theta0, x))
    close(linear(theta0 + step, x) - linear(theta0, x), 2 * (linear(theta0 + step / 2, x) - linear(theta0, x)))
    close(linear(theta0 + step, x), network(theta0, x) + features(network, theta0, x) @ step)
    kernel = tangent_kernel(network, theta0, x, x)
    close(kernel, kernel.T)
    assert float(torch.linalg.eigvalsh(kernel).min()) >= -1e-12
    rows = torch.stack([grad(lambda t, i=i: network(t, x[i : i + 1])[0])(theta0) for i in range(6)])
    close(kernel, rows @ rows.T)


@pytest.mark.system("ntk-linearization", "flow")
def test_flow_is_the_limit_of_small_steps(setting: tuple[torch.Tensor, ...]) -> None:
    """And torch's matrix exponential; also where the kernel is singular, since two inputs are the same."""
    theta0, x, y, new = setting
    x, y = torch.cat([x, x[:1]]), torch.cat([y, y[:1]])
    kernel, k = (tangent_kernel(network, theta0, at, x) for at in (x, new))
    residual = y - network(theta0, x)
    time = 3.0
    learnt = residual - torch.linalg.matrix_exp(-time / 7 * kernel) @ residual
    close(kernel_flow(kernel, kernel, residual, time), learnt)
    for at in (k, kernel):
        close(kernel_flow(at, kernel, residual, time), kernel_descent(at, kernel, residual, 1e-6, time / 1e-6), 1000)
