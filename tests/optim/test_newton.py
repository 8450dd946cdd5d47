"""Newton, its diagonal, and curvature: exact on quadratics, and against autograd's Hessian."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.func import functional_call
from torch.func import hessian as torch_hessian

from descend.optim.curvature import (
    along,
    diagonal_estimate,
    gauss_newton_product,
    hessian,
    hessian_product,
    jacobian_products,
    slopes,
)
from descend.optim.flat import flatten, unflatten
from descend.optim.newton import DiagonalNewton, EstimatedDiagonalNewton, Newton, hessian_entries
from descend.optim.trajectory import quadratic, rosenbrock, trajectory
from tests.close import close
from tests.optim.problems import problem

SLUG = "newton-and-curvature"
H = torch.tensor([[3.0, 1.0], [1.0, 2.0]], dtype=torch.float64)
B = torch.tensor([1.0, -2.0], dtype=torch.float64)
START = torch.tensor([5.0, 5.0], dtype=torch.float64)


def explicit() -> tuple[nn.Module, torch.Tensor, torch.Tensor, torch.Tensor]:
    """A network, its data, and the Hessian of its loss by torch.func."""
    model, x, y = problem()
    params = list(model.parameters())
    names = [name for name, _ in model.named_parameters()]

    def loss(vector: torch.Tensor) -> torch.Tensor:
        parts = dict(zip(names, unflatten(vector, params), strict=True))
        return (functional_call(model, parts, x) - y).square().mean()

    return model, x, y, torch_hessian(loss)(flatten(params).detach())


@pytest.mark.system("newton-and-curvature", "curvature")
@pytest.mark.system(SLUG)
def test_hessian_and_products_are_those_of_torch_func() -> None:
    model, x, y, theirs = explicit()
    params = list(model.parameters())
    g = slopes((model(x) - y).square().mean(), params)
    close(hessian(g, params), theirs)
    v = torch.randn(len(theirs), dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    close(hessian_product(g, params)(v), theirs @ v)


@pytest.mark.system("hessian-free-optimization")
@pytest.mark.system("hessian-free-optimization", "products")
def test_gauss_newton_products_are_those_of_the_explicit_matrix() -> None:
    """For the mean square the Hessian in the outputs is 2/n I, so G = 2/n JᵀJ; it has no negative eigenvalue."""
    model, x, y, full = explicit()
    params = list(model.parameters())
    outputs = model(x)
    rows = [flatten(torch.autograd.grad(o, params, retain_graph=True)) for o in outputs.reshape(-1)]
    j = torch.stack(rows)
    product = gauss_newton_product((outputs - y).square().mean(), outputs, params)
    g = torch.stack([product(e) for e in torch.eye(len(full), dtype=torch.float64)])
    close(g, 2 / len(j) * j.T @ j)
    assert torch.linalg.eigvalsh(g).min() > -1e-12 > torch.linalg.eigvalsh(full).min()
    forward, backward = jacobian_products(outputs, params)
    v = torch.arange(len(full), dtype=torch.float64)
    close(forward(v).reshape(-1), j @ v)
    close(backward(torch.ones_like(outputs)), j.sum(0))


@pytest.mark.system("newton-and-curvature", "newton")
@pytest.mark.system(SLUG)
def test_one_newton_step_solves_a_quadratic() -> None:
    close(trajectory(Newton, quadratic(H, B), START, 1).theta[-1], torch.linalg.solve(H, B))
    damped = trajectory(lambda p: Newton(p, damping=10.0), quadratic(H, B), START, 1).theta[-1]
    close(damped, START - torch.linalg.solve(H + 10 * torch.eye(2, dtype=torch.float64), H @ START - B))


@pytest.mark.system(SLUG)
def test_newton_on_rosenbrock() -> None:
    end = trajectory(Newton, rosenbrock, torch.tensor([-1.2, 1.0], dtype=torch.float64), 7).theta[-1]
    close(end, torch.ones(2, dtype=torch.float64))


@pytest.mark.system("newton-and-curvature", "diagonal")
@pytest.mark.system(SLUG)
def test_the_diagonal_is_exact_along_the_axes_only() -> None:
    axes = torch.diag(torch.tensor([1.0, 100.0], dtype=torch.float64))
    for method in (DiagonalNewton, lambda p: EstimatedDiagonalNewton(p, damping=0.0, samples=1)):
        assert trajectory(method, quadratic(axes), START, 1).theta[-1].norm() < 1e-12
    turn = torch.tensor([[0.6, -0.8], [0.8, 0.6]], dtype=torch.float64)
    rotated = quadratic(turn @ axes @ turn.T)
    assert trajectory(DiagonalNewton, rotated, START, 1).theta[-1].norm() > 0.1
    end = trajectory(lambda p: DiagonalNewton(p, 0.5, 1.0), rotated, START, 150).theta[-1]
    assert end.norm() < 0.3 * START.norm()


@pytest.mark.system("newton-and-curvature", "diagonal")
@pytest.mark.system(SLUG)
def test_the_estimated_diagonal_tends_to_the_diagonal() -> None:
    torch.manual_seed(0)
    estimate = diagonal_estimate(lambda v: H @ v, B, 4000)
    assert (estimate - H.diagonal()).abs().max() < 4 / 4000**0.5  # the off-diagonal 1 makes σ = 1


@pytest.mark.system("newton-and-curvature", "curvature")
@pytest.mark.system(SLUG)
def test_a_direction_promises_its_reduction() -> None:
    """g / c leads to the minimum of the line, and the loss falls by g² / 2c there."""
    theta = START.clone().requires_grad_()
    loss, d = quadratic(H, B), torch.tensor([0.6, 0.8], dtype=torch.float64)
    found = along(loss(theta), [theta], d)
    close(found.curvature, d @ H @ d)
    lower = loss(START - found.step * d)
    close(loss(START) - lower, found.reduction)
    for share in (0.9, 1.1):
        assert loss(START - share * found.step * d) > lower


@pytest.mark.system("newton-and-curvature", "size")
@pytest.mark.system(SLUG)
def test_the_hessian_of_a_million_parameters() -> None:
    assert hessian_entries(10**6) == 10**12


def test_a_linear_loss_has_no_curvature() -> None:
    theta = START.clone().requires_grad_()
    g = slopes((theta * B).sum(), [theta])
    assert not hessian(g, [theta]).any()
    assert not hessian_product(g, [theta])(B).any()
