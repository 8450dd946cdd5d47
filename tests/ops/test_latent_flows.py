"""Planar and radial maps: their determinants by automatic differentiation, and that they can be undone."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.func import jacrev, vmap

from descend.ops.latent_flows import planar_flow, radial_flow
from tests.close import close

K = 3


def numbers(n: int, seed: int = 0) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    random = torch.Generator().manual_seed(seed)
    z, u, w = 2 * torch.randn(3, n, K, dtype=torch.float64, generator=random)
    a, b = 2 * torch.randn(2, n, dtype=torch.float64, generator=random)
    return z, u, w, a, b


def flows() -> dict[str, Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]]:
    return {
        "planar": lambda z, u, w, a, b: planar_flow(z, u, w, b),
        "radial": lambda z, u, w, a, b: radial_flow(z, u, a, b),
    }


@pytest.mark.system("flow-posterior-vae")
@pytest.mark.system("flow-posterior-vae", "log-determinants")
@pytest.mark.parametrize("name", ["planar", "radial"])
def test_log_determinants(name: str) -> None:
    flow = flows()[name]
    z, *rest = numbers(200)
    jacobian = vmap(jacrev(lambda z, *p: flow(z, *p)[0]))(z, *rest)
    sign, log_det = torch.linalg.slogdet(jacobian)
    assert (sign > 0).all()  # never folds, whatever the numbers: invertible
    close(flow(z, *rest)[1], log_det)
    assert log_det.abs().max() > 0.5


@pytest.mark.parametrize("name", ["planar", "radial"])
def test_gradients(name: str) -> None:
    inputs = [v.requires_grad_() for v in numbers(3, seed=1)]
    assert torch.autograd.gradcheck(lambda *p: flows()[name](*p), inputs)


@pytest.mark.system("flow-posterior-vae", "log-determinants")
@pytest.mark.parametrize("name", ["planar", "radial"])
def test_mass_is_kept(name: str) -> None:
    """On a line: the density of what N(0, 1) becomes, by the change of variables, integrates to 1."""
    z = torch.linspace(-12, 12, 20_001, dtype=torch.float64)[:, None]
    one = torch.ones(1, dtype=torch.float64)
    y, log_det = flows()[name](z, 1.5 * one, -2 * one, 0.3 * one, 0.7 * one)
    density = torch.distributions.Normal(0.0, 1.0).log_prob(z[:, 0]).sub(log_det).exp()
    assert (y[:, 0].diff() > 0).all()
    close(torch.trapezoid(density, y[:, 0]), torch.tensor(1.0, dtype=torch.float64), loosen=1e4)  # the rule's error
