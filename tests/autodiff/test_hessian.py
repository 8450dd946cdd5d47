"""Hessian, diagonal and product against torch, finite differences of the gradient and closed forms."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from descend.autodiff.hessian import condition_number, diagonal, hessian, hvp
from tests.close import close

pytestmark = pytest.mark.system("hessian-and-hvp")


def energy(x: Tensor) -> Tensor:
    return (x.sin() * x.flip(0).exp()).sum() + x.prod()


X = torch.tensor([0.3, -0.8, 1.2], dtype=torch.float64)


@pytest.mark.system("hessian-and-hvp", "full", "diagonal")
def test_against_torch_and_finite_differences() -> None:
    h = hessian(energy, X)
    close(h, torch.autograd.functional.hessian(energy, X))
    close(h, h.T)
    close(diagonal(energy, X), h.diagonal())
    step = 1e-5
    gradient = torch.func.grad(energy)
    columns = [(gradient(X + step * e) - gradient(X - step * e)) / (2 * step) for e in torch.eye(3).double()]
    close(h, torch.stack(columns, 1), loosen=10)  # central differences are good to 1e-9


@pytest.mark.system("hessian-and-hvp", "product")
def test_the_product_does_without_the_matrix() -> None:
    v = torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64)
    close(hvp(energy, X, v), hessian(energy, X) @ v)
    close(hvp(energy, X, v), torch.autograd.functional.hvp(energy, X, v)[1])
    many = torch.linspace(-1, 1, 20_000, dtype=torch.float64)  # the matrix would have 3 GB
    close(hvp(lambda x: (x**4).sum(), many, torch.ones_like(many)), 12 * many**2)


@pytest.mark.system("hessian-and-hvp", "diagonal")
def test_parameters_of_any_shape() -> None:
    w = torch.arange(6, dtype=torch.float64).view(2, 3) / 6
    h = hessian(lambda m: m.tanh().sum() ** 2, w)
    assert h.shape == (6, 6)
    close(diagonal(lambda m: m.tanh().sum() ** 2, w), h.diagonal().view(2, 3))


@pytest.mark.system("hessian-and-hvp", "off-diagonal")
def test_an_axis_aligned_ellipse_has_zero_off_diagonals() -> None:
    """Erratum of DLN; turned by 45° the same ellipse has them, with the same condition number."""
    straight = torch.tensor([1.0, 100.0], dtype=torch.float64).diag()
    turn = torch.tensor([[1.0, -1.0], [1.0, 1.0]], dtype=torch.float64) / 2**0.5
    tilted = turn @ straight @ turn.T
    x = torch.ones(2, dtype=torch.float64)
    found, other = (hessian(lambda v: v @ m @ v / 2, x) for m in (straight, tilted))
    assert found[0, 1].item() == 0
    close(other, tilted)
    assert abs(other[0, 1].item()) > 10
    close(condition_number(found), 100.0)
    close(condition_number(other), torch.tensor(100.0, dtype=torch.float64), loosen=10)
    gradient = torch.func.grad(lambda v: v @ straight @ v / 2)(x)
    assert abs((gradient / gradient.norm() - x / x.norm()).norm()) > 0.5  # steepest descent misses the minimum
