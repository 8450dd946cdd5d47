"""Latent-variable energies: branches, degenerate energies, and what limits z."""

from __future__ import annotations

import pytest
import torch
from sklearn.linear_model import Lasso
from torch import Tensor, nn

from descend.nn.energy.latent import LatentEnergy
from descend.nn.energy.limits import Ball, Codes, Counted, Inhibition, Largest, Limit, Sparse
from descend.seeds import generator
from tests.close import close

pytestmark = pytest.mark.system("latent-variable-ebm")
DOUBLE = torch.float64


class Take(nn.Module):
    """A fixed linear map."""

    def __init__(self, a: Tensor) -> None:
        super().__init__()
        self.register_buffer("a", a)

    def forward(self, x: Tensor) -> Tensor:
        return x @ self.a.T  # type: ignore[operator]


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=generator(seed), dtype=DOUBLE)


def branches(limit: Limit, weight: float = 0.0) -> LatentEnergy:
    """ŷ = x + z, one number each."""
    return LatentEnergy(Take(torch.eye(1, dtype=DOUBLE)), Take(torch.ones(1, 2, dtype=DOUBLE)), limit, weight)


@pytest.mark.system("latent-variable-ebm", "parts", "branches")
def test_two_codes_reproduce_both_branches() -> None:
    """y = x + s, s = −1 or +1: F is 0 on both branches and not between them; z moves over the answers for one x."""
    codes = torch.tensor([[-1.0], [1.0]], dtype=DOUBLE)
    model, x = branches(Codes(codes)), normal(6, 1)
    for s in (-1.0, 1.0):
        found = model.explain_by_codes(x, x + s, codes)
        close(found.z, torch.full((6, 1), s, dtype=DOUBLE))
        assert found.energy.max() < 1e-20
    close(model.explain_by_codes(x, x + 0.2, codes).energy, torch.full((6,), 0.64, dtype=DOUBLE))
    answers = torch.cat([model.answer(x, code.expand(6, 1)) for code in codes], 1)
    close(answers, torch.cat([x - 1, x + 1], 1))
    by_descent = model.explain(x, x + 0.9, torch.zeros(6, 1, dtype=DOUBLE), 0.4, 5)
    close(by_descent.z, torch.ones(6, 1, dtype=DOUBLE))


@pytest.mark.system("latent-variable-ebm", "parts")
def test_both_ways_of_minimising_agree_with_every_z() -> None:
    """E by hand; the minimum of a grid of codes is the one by descent up to the grid."""
    model, x, y = branches(Sparse(), 0.5), normal(4, 1), normal(4, 1, seed=1)
    z = normal(4, 1, seed=2)
    close(model(x, y, z), (y - x - z).square()[:, 0] + 0.5 * z.abs()[:, 0])
    grid = torch.linspace(-4, 4, 801, dtype=DOUBLE)[:, None]
    listed, descended = model.explain_by_codes(x, y, grid), model.explain(x, y, torch.zeros_like(z), 0.2, 100)
    assert (listed.energy - descended.energy).abs().max() < 1e-3
    assert (descended.energy <= listed.energy + 1e-12).all()


@pytest.mark.system("latent-variable-ebm", "degenerate", "lambda")
def test_without_a_limit_every_y_has_energy_zero() -> None:
    """z as large as y and λ = 0: F = 0 everywhere. Growing λ raises it off the manifold y = f(x)."""
    d = 3
    decode = torch.cat([torch.eye(d), torch.eye(d)], 1).double()
    x = normal(5, d)
    near, far = x + 0.05 * normal(5, d, seed=1), x + 3 * normal(5, d, seed=2)
    energies = []
    for weight in (0.0, 0.1, 0.5, 2.0):
        model = LatentEnergy(Take(torch.eye(d, dtype=DOUBLE)), Take(decode), Sparse(), weight)
        off = model.explain(x, far, torch.zeros(5, d, dtype=DOUBLE), 0.4, 60).energy.mean()
        on = model.explain(x, near, torch.zeros(5, d, dtype=DOUBLE), 0.4, 60).energy.mean()
        energies.append((float(off), float(on)))
    assert energies[0][0] < 1e-12
    assert energies[0][1] < 1e-12
    assert [off for off, _ in energies] == sorted(off for off, _ in energies)
    assert energies[-1][0] > 50 * energies[-1][1]


@pytest.mark.system("latent-variable-ebm", "sparse-coding")
def test_l1_finds_the_lasso_of_scikit_learn() -> None:
    """ŷ = D z, C = ‖y − D z‖², λ‖z‖₁; scikit-learn minimises (1/2n)‖·‖² + α‖z‖₁, so α = λ/2n."""
    dictionary, y, weight = normal(8, 12), normal(1, 8, seed=1), 0.8
    decode = torch.cat([torch.zeros(8, 1, dtype=DOUBLE), dictionary], 1)
    model = LatentEnergy(Take(torch.ones(1, 1, dtype=DOUBLE)), Take(decode), Sparse(), weight)
    rate = 1 / (2 * float(torch.linalg.matrix_norm(dictionary, 2)) ** 2)
    found = model.explain(torch.zeros(1, 1, dtype=DOUBLE), y, torch.zeros(1, 12, dtype=DOUBLE), rate, 3000)
    theirs = Lasso(alpha=weight / 16, fit_intercept=False, tol=1e-12, max_iter=100_000)
    theirs.fit(dictionary.numpy(), y[0].numpy())
    assert (found.z[0] - torch.from_numpy(theirs.coef_)).abs().max() < 1e-5
    assert (found.z == 0).any()


@pytest.mark.system("latent-variable-ebm", "limits")
@pytest.mark.parametrize("limit", [Sparse(), Counted()])
@pytest.mark.parametrize("t", [0.1, 0.7])
def test_settling_minimises_what_it_says(limit: Limit, t: float) -> None:
    """argmin_u ½(u − z)² + t R(u), number by number, against a fine list of u."""
    z = torch.linspace(-2, 2, 23, dtype=DOUBLE)
    u = torch.linspace(-3, 3, 6001, dtype=DOUBLE)
    values = (u - z[:, None]).square() / 2 + t * limit.penalty(u[:, None])
    best = values.min(1).values
    settled = limit.settle(z[:, None], t)
    ours = (settled[:, 0] - z).square() / 2 + t * limit.penalty(settled)
    assert (ours <= best + 1e-9).all()


@pytest.mark.system("latent-variable-ebm", "limits")
def test_sets_that_z_must_lie_in() -> None:
    z = normal(20, 5, seed=3)
    top = Largest(2).settle(z, 0.0)
    assert ((top != 0).sum(1) == 2).all()
    assert torch.equal(top.abs().amax(1), z.abs().amax(1))
    ball = Ball(1.5)
    inside = ball.settle(z, 0.0)
    assert inside.norm(dim=1).max() <= 1.5 + 1e-12
    short = z.norm(dim=1) <= 1.5
    assert torch.equal(inside[short], z[short])
    noise = normal(20, 5, seed=4)
    close(ball.blur(z, noise, 0.3) - z, 0.3 * noise)
    codes = normal(4, 5, seed=5)
    assert torch.equal(Codes(codes).settle(z, 0.0), codes[torch.cdist(z, codes).argmin(1)])
    assert Limit().settle(z, 9.0) is z
    assert Limit().penalty(z).sum() == Ball().penalty(z).sum() == 0


@pytest.mark.system("latent-variable-ebm", "limits")
def test_inhibition_lets_the_strongest_silence_the_others() -> None:
    links = torch.ones(3, 3, dtype=DOUBLE) - torch.eye(3, dtype=DOUBLE)
    limit, z = Inhibition(links), torch.tensor([[1.0, 0.3, -0.2]], dtype=DOUBLE)
    close(limit.penalty(z), torch.tensor([2 * (0.3 + 0.2 + 0.06)], dtype=DOUBLE))
    settled = limit.settle(z, 0.15)
    assert (settled != 0).tolist() == [[True, False, False]]
    assert limit.penalty(settled) < limit.penalty(z)
    with pytest.raises(ValueError, match="no unit inhibits itself"):
        Inhibition(torch.ones(2, 2))


@pytest.mark.system("latent-variable-ebm", "parts")
def test_the_energy_trains_the_modules_not_z() -> None:
    torch.manual_seed(0)
    model = LatentEnergy(nn.Linear(2, 3), nn.Linear(5, 2), Sparse(), 0.1).double()
    found = model.explain(normal(4, 2), normal(4, 2, seed=1), torch.zeros(4, 2, dtype=DOUBLE), 0.1, 5)
    found.energy.mean().backward()
    assert not found.z.requires_grad
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in model.parameters())
