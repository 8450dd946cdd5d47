"""Drawing latent vectors with gradients, and moving among them."""

from __future__ import annotations

import math

import pytest
import torch
from torch.distributions import Normal

from descend.ops.latent import (
    attribute_direction,
    interpolate,
    latent_grid,
    move_along,
    pathwise_gradients,
    reparameterize,
    score_function_gradients,
    standard_normal_log_prob,
)
from tests.close import close


@pytest.mark.system("reparameterization")
@pytest.mark.system("reparameterization", "sampler", "no-gradient-through-noise")
def test_samples_have_the_moments_and_carry_gradients() -> None:
    random = torch.Generator().manual_seed(0)
    mu = torch.tensor([0.7, -2.0], dtype=torch.float64, requires_grad=True)
    log_var = torch.tensor([0.5, -1.0], dtype=torch.float64, requires_grad=True)
    eps = torch.randn(200_000, 2, dtype=torch.float64, generator=random)
    z = reparameterize(mu, log_var, eps)
    assert (z.mean(0) - mu).abs().max() < 0.01
    assert (z.var(0) / log_var.exp() - 1).abs().max() < 0.02
    ours = torch.autograd.grad((z**2).mean(0).sum(), [mu, log_var])
    close(ours[0], 2 * z.mean(0))
    close(ours[1], (z * eps * (log_var / 2).exp()).mean(0))  # ∂σ/∂log σ² = σ/2
    torch.manual_seed(0)
    theirs = Normal(mu, (log_var / 2).exp()).rsample((3,))
    torch.manual_seed(0)
    close(reparameterize(mu, log_var, torch.normal(torch.zeros(3, 2, dtype=torch.float64), 1.0)), theirs)
    assert not eps.requires_grad
    huge = reparameterize(mu, torch.tensor([-60.0, 60.0], dtype=torch.float64), eps[:5])
    assert huge.isfinite().all()


@pytest.mark.system("reparameterization", "score-function", "variance")
@pytest.mark.parametrize("seed", range(3))
def test_both_estimators_agree_and_one_is_much_noisier(seed: int) -> None:
    """∇E f of a polynomial, a bump and an exponential: the same mean, a variance at least three times as large."""
    mu, sigma = torch.tensor([0.7], dtype=torch.float64), torch.tensor([0.4], dtype=torch.float64)
    eps = torch.randn(100_000, 1, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    exact: dict[str, tuple[float, ...]] = {
        "square": (1.4, 0.8),
        "exp": tuple(math.exp(0.7 + 0.08) * c for c in (1, 0.4)),
        "quartic": (4 * 0.7**3 + 12 * 0.7 * 0.16, 12 * 0.49 * 0.4 + 12 * 0.4**3),
    }
    functions = {"square": lambda z: z[:, 0] ** 2, "exp": lambda z: z[:, 0].exp(), "quartic": lambda z: z[:, 0] ** 4}
    for name, f in functions.items():
        path, score = pathwise_gradients(f, mu, sigma, eps), score_function_gradients(f, mu, sigma, eps)
        for p, s, right in zip(path, score, exact[name], strict=True):
            for found in (p, s):
                error = found.std() / math.sqrt(len(eps))
                assert abs(found.mean() - right) < 5 * error
            assert s.var() > 3 * p.var()


@pytest.mark.system("latent-traversals")
@pytest.mark.system("latent-traversals", "interpolation")
def test_walks_begin_and_end_where_they_should() -> None:
    a, b = torch.randn(2, 3, 4, generator=torch.Generator().manual_seed(0))
    path = interpolate(a, b, 6)
    assert torch.equal(path[0], a)
    close(path[-1], b)
    steps = path.diff(dim=0)
    close(steps, steps[:1].expand_as(steps))
    with pytest.raises(ValueError, match="at least 2"):
        interpolate(a, b, 1)


@pytest.mark.system("latent-traversals", "edits")
def test_edits_move_along_directions() -> None:
    z = torch.randn(6, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    has = torch.tensor([1, 1, 0, 0, 0, 1])
    direction = attribute_direction(z, has)
    close(direction, z[[0, 1, 5]].mean(0) - z[[2, 3, 4]].mean(0))
    moved = move_along(z, direction, torch.tensor([0.0, 1.0, -2.0], dtype=torch.float64))
    assert torch.equal(moved[0], z)
    close(moved[2], z - 2 * direction)
    both = move_along(move_along(z, direction, torch.ones(1))[0], torch.ones(3, dtype=torch.float64), torch.ones(1))
    close(both[0], z + direction + 1)
    with pytest.raises(ValueError, match="with and without"):
        attribute_direction(z, torch.ones(6))


@pytest.mark.system("latent-traversals", "grid")
def test_a_grid_of_codes() -> None:
    z = latent_grid(3, 2.0, k=4, units=(1, 3))
    assert z.shape == (9, 4)
    assert z[:, [0, 2]].eq(0).all()
    assert z[0].tolist() == [0, -2, 0, 2]
    assert z[-1].tolist() == [0, 2, 0, -2]


def test_the_standard_normal() -> None:
    z = torch.randn(5, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    close(standard_normal_log_prob(z), Normal(0.0, 1.0).log_prob(z).sum(-1))
