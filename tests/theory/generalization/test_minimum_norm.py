"""Gradient descent and the solution of the smallest norm."""

from __future__ import annotations

import pytest
import torch

from descend.optim.trajectory import trajectory
from descend.theory.generalization.minimum_norm import descend_to, descent_limit, minimum_norm
from tests.close import close


@pytest.mark.system("implicit-regularization-gd")
@pytest.mark.system("implicit-regularization-gd", "pseudo-inverse", "limit", "start")
@pytest.mark.parametrize("seed", range(3))
def test_descent_finds_the_solution_nearest_to_its_start(seed: int) -> None:
    random = torch.Generator().manual_seed(seed)
    a, y = torch.randn(4, 9, generator=random).double(), torch.randn(4, generator=random).double()
    start = torch.randn(9, generator=random).double()
    lr = 1 / float(torch.linalg.matrix_norm(a, 2)) ** 2
    zero = torch.zeros(9, dtype=torch.float64)
    close(descend_to(a, y, zero, lr, 4000), minimum_norm(a, y))
    close(minimum_norm(a, y), a.T @ torch.linalg.solve(a @ a.T, y))
    close(minimum_norm(a, y), torch.linalg.lstsq(a, y[:, None], driver="gelsd").solution[:, 0])
    end = trajectory(lambda p: torch.optim.SGD(p, lr), lambda t: 0.5 * (a @ t - y).square().sum(), start, 4000).theta[
        -1
    ]
    close(end, descent_limit(a, y, start))
    close(a @ end, y)
    # of all solutions, A⁺y + a null vector, the norm is smallest at 0 and the distance smallest at the start
    null = torch.linalg.svd(a).Vh[4:].T
    others = minimum_norm(a, y) + torch.randn(500, 5, generator=random).double() @ null.T
    assert (others.norm(dim=1) > minimum_norm(a, y).norm()).all()
    assert ((others - start).norm(dim=1) > (end - start).norm()).all()
    assert not torch.allclose(end, minimum_norm(a, y), atol=0.1)
