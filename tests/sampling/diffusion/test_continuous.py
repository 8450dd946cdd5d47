"""SDE solvers against torchsde, their orders, the reverse SDE, and the probability flow with its likelihood."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import pairwise

import pytest
import torch
from torch import Tensor

from descend.errors import Mistake
from descend.ops.diffusion.sde import SDE, VE, VP, SubVP
from descend.sampling.diffusion.flow import ProbabilityFlow
from descend.sampling.diffusion.stochastic import METHODS, sample_sde, score_of_noise, solve_sde
from tests.close import close

SDES: dict[str, SDE] = {"ve": VE(0.01, 10.0), "vp": VP(), "sub-vp": SubVP()}
N = 20_000


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def last(steps: Iterator[Tensor]) -> Tensor:
    *_, found = steps
    return found


def given(*parts: Tensor) -> Callable[..., Tensor]:
    """Noise that is known beforehand."""
    rest = iter(parts)
    return lambda: next(rest)


class Growth:
    """dx = (a + t) x dt + b x dw: g depends on x."""

    noise_type, sde_type = "diagonal", "ito"

    def f(self, t: Tensor, x: Tensor) -> Tensor:
        return (0.4 + t) * x

    def g(self, t: Tensor, x: Tensor) -> Tensor:
        return 0.7 * x


class Level(Growth):
    """g depends on t alone."""

    def g(self, t: Tensor, x: Tensor) -> Tensor:
        return (0.5 + t) * torch.ones_like(x)


@pytest.mark.system("sde-solvers")
@pytest.mark.system("sde-solvers", "euler-maruyama")
@pytest.mark.system("sde-solvers", "milstein")
@pytest.mark.system("sde-solvers", "runge-kutta")
@pytest.mark.parametrize("kind", [Growth, Level])
@pytest.mark.parametrize(
    ("method", "theirs", "options"),
    [
        ("euler-maruyama", "euler", {}),
        ("milstein", "milstein", {}),
        ("runge-kutta", "milstein", {"grad_free": True}),
    ],
)
def test_paths_of_torchsde(kind: type, method: str, theirs: str, options: dict[str, bool]) -> None:
    """Equal increments of the Wiener process, equal paths."""
    torchsde = pytest.importorskip("torchsde")
    sde, times = kind(), torch.linspace(0, 1, 17, dtype=torch.float64)
    x0 = normal(6, 3)
    motion = torchsde.BrownianInterval(0.0, 1.0, size=x0.shape, dtype=torch.float64, entropy=3)
    path = torchsde.sdeint(sde, x0, times, bm=motion, method=theirs, dt=1 / 16, options=options)
    noise = [motion(a, b) * 4 for a, b in pairwise(times)]
    f, g = (lambda x, t, h=h: h(torch.tensor(t, dtype=torch.float64), x) for h in (sde.f, sde.g))
    ours = torch.stack(list(solve_sde(f, g, x0, times.tolist(), given(*noise), method)))
    close(ours, path[1:])


@pytest.mark.system("sde-solvers", "milstein")
def test_all_three_are_one_where_g_depends_on_time_alone() -> None:
    sde, x0, noise = Level(), normal(4, 2), normal(8, 4, 2, seed=1)
    f, g = (lambda x, t, h=h: h(torch.tensor(t, dtype=torch.float64), x) for h in (sde.f, sde.g))
    times = torch.linspace(1, 0, 9).tolist()
    found = [last(solve_sde(f, g, x0, times, given(*noise), method)) for method in METHODS]
    close(found[1], found[0])
    close(found[2], found[0])
    with pytest.raises(Mistake, match="Did you mean 'milstein'"):
        last(solve_sde(f, g, x0, times, given(*noise), "milsten"))


@pytest.mark.system("sde-solvers", "orders")
def test_orders() -> None:
    """dx = ½ x dt + x dw has x_0 e^{w}: the mean error over paths halves with every fourth step for Euler-Maruyama,
    with every half for the others; the error of the mean, which is known for each step, halves for Euler-Maruyama."""
    fine = normal(256, N, 1, seed=2) / 16
    exact = fine.sum(0).exp()
    strong: dict[str, list[float]] = {method: [] for method in METHODS}
    for steps in (16, 64, 256):
        dw = fine.unflatten(0, (steps, -1)).sum(1) * steps**0.5
        times = torch.linspace(0, 1, steps + 1, dtype=torch.float64).tolist()
        for method in METHODS:
            x = last(
                solve_sde(lambda x, t: x / 2, lambda x, t: x, torch.ones(N, 1).double(), times, given(*dw), method)
            )
            strong[method].append(float((x - exact).abs().mean()))
    for method, errors in strong.items():
        for ratio in (errors[0] / errors[1], errors[1] / errors[2]):
            assert (1.7 < ratio < 2.4) if method == "euler-maruyama" else (3.2 < ratio < 4.6), (method, errors)
    weak = [abs((1 + 0.5 / n) ** n - math.exp(0.5)) for n in (16, 32)]  # E of the Euler-Maruyama step is 1 + Δt/2
    assert 1.9 < weak[0] / weak[1] < 2.1


def gaussian_score(sde: SDE, std: float) -> Callable[..., Tensor]:
    """The score of data N(0, std²)."""

    def score(x: Tensor, t: Tensor) -> Tensor:
        mean, spread = sde.marginal(t)
        return -x / (mean.square() * std**2 + spread.square()).reshape(-1, 1)

    return score


@pytest.mark.system("score-sde", "reverse")
@pytest.mark.system("sde-solvers", "reverse")
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", SDES)
def test_the_reverse_sde_recovers_the_data(name: str, method: str) -> None:
    """From the prior at t = 1, Δt < 0, to N(0, 1.5²)."""
    sde, random = SDES[name], torch.Generator().manual_seed(1)
    draw = lambda: torch.randn(N, 1, generator=random, dtype=torch.float64)
    score = gaussian_score(sde, 1.5)
    x = last(sample_sde(sde, score, sde.prior_std * draw(), draw, 300, method))
    assert abs(x.mean()) < 0.1
    assert abs(x.std() / 1.5 - 1) < 0.03


def test_a_network_of_noise_gives_the_score() -> None:
    sde, x, t = VP(), normal(4, 2), torch.full((4,), 0.3, dtype=torch.float64)
    eps = lambda x, t: 2 * x
    close(score_of_noise(sde, eps)(x, t), -2 * x / sde.marginal(t)[1][:, None])


@pytest.mark.system("probability-flow-ode")
@pytest.mark.system("probability-flow-ode", "gaussian")
@pytest.mark.system("probability-flow-ode", "round-trip")
@pytest.mark.system("score-sde", "likelihood")
@pytest.mark.parametrize("name", SDES)
def test_the_flow_of_gaussian_data(name: str) -> None:
    """x(1) = x(0) √(v_1 / v_0), log p by the change of variables; back to the data."""
    sde = SDES[name]
    flow = ProbabilityFlow(sde, gaussian_score(sde, 1.5), rtol=1e-8, atol=1e-10)
    x = normal(7, 1)
    z, change = flow.encode_with_change(x)
    mean, std = (float(v) for v in sde.marginal(torch.ones((), dtype=torch.float64)))
    factor = math.sqrt(mean**2 * 2.25 + std**2) / 1.5
    close(z, factor * x, loosen=1e3)  # the solver's tolerance
    close(change, torch.full((7,), math.log(factor), dtype=torch.float64), loosen=1e3)
    close(flow.decode(flow.encode(x)), x, loosen=1e3)
    exact = torch.distributions.Normal(0 * x, 0 * x + 1.5).log_prob(x)[:, 0]
    prior = mean**2 * 2.25 + std**2  # what is at t = 1 is not quite the prior
    at_one = torch.distributions.Normal(0 * z, 0 * z + prior**0.5).log_prob(z)[:, 0]
    close(at_one + change, exact, loosen=1e3)
    if name != "ve":  # VE's prior σ_max = 10 is rough
        assert (flow.log_prob(x) - exact).abs().max() < 1e-3


def mixture_score(sde: SDE) -> Callable[..., Tensor]:
    """The score of ½ N(−1, ¼) + ½ N(1, ¼) in each of d numbers."""

    def score(x: Tensor, t: Tensor) -> Tensor:
        mean, std = (v.reshape(-1, 1, 1) for v in sde.marginal(t))
        variance = 0.25 * mean.square() + std.square()
        away = torch.tensor([-1.0, 1.0], dtype=x.dtype) * mean - x[..., None]
        return ((-0.5 * away.square() / variance).softmax(-1) * away / variance).sum(-1)

    return score


def mixture_log_prob(x: Tensor) -> Tensor:
    parts = torch.stack([torch.distributions.Normal(m + 0 * x, 0 * x + 0.5).log_prob(x) for m in (-1.0, 1.0)])
    return (parts.logsumexp(0) - math.log(2)).sum(1)


@pytest.mark.system("probability-flow-ode", "trace")
@pytest.mark.system("probability-flow-ode", "integrates")
@pytest.mark.system("score-sde", "likelihood")
def test_likelihood_of_a_mixture() -> None:
    """The exact trace gives log p; Hutchinson's is right in the mean over signs, exactly so where the Jacobian is
    diagonal; in one dimension the density integrates to 1."""
    sde = VP()
    flow = ProbabilityFlow(sde, mixture_score(sde), rtol=1e-6, atol=1e-8)
    x = normal(6, 2)
    exact = flow.log_prob(x)
    assert (exact - mixture_log_prob(x)).abs().max() < 1e-3
    signs = normal(6, 2, seed=1).sign()
    close(flow.log_prob(x, signs), exact, loosen=1e3)
    line = torch.linspace(-5, 5, 201, dtype=torch.float64)[:, None]
    assert abs(float(flow.log_prob(line).exp().sum()) * 0.05 - 1) < 1e-3


@pytest.mark.system("probability-flow-ode", "trace")
def test_hutchinson_where_numbers_depend_on_each_other() -> None:
    """Correlated Gaussian data: one draw of signs is off, the mean over all four is exact."""
    sde, c = VP(), torch.tensor([[1.0, 0.8], [0.8, 1.0]], dtype=torch.float64)

    def score(x: Tensor, t: Tensor) -> Tensor:
        mean, std = sde.marginal(t[:1])
        return -x @ torch.linalg.inv(mean.square() * c + std.square() * torch.eye(2, dtype=torch.float64))

    flow = ProbabilityFlow(sde, score, method="rk4", steps=100)
    x = normal(3, 2)
    every = torch.tensor([[a, b] for a in (-1.0, 1.0) for b in (-1.0, 1.0)], dtype=torch.float64)
    found = torch.stack([flow.log_prob(x, v.expand(3, 2)) for v in every])
    exact = flow.log_prob(x)
    assert (found - exact).abs().max() > 0.05
    close(found.mean(0), exact)
    theirs = torch.distributions.MultivariateNormal(torch.zeros(2).double(), c).log_prob(x)
    assert (exact - theirs).abs().max() < 1e-2


@pytest.mark.system("probability-flow-ode", "marginals")
@pytest.mark.system("probability-flow-ode", "adaptive")
def test_flow_and_sde_have_the_same_marginals() -> None:
    """4,000 starts: quantiles of both at the end are those of the data. The flow takes a tenth of the evaluations, and
    its paths do not depend on chance."""
    sde, n = VP(), 4000
    score = mixture_score(sde)
    z, random = normal(n, 1), torch.Generator().manual_seed(1)
    draw = lambda: torch.randn(n, 1, generator=random, dtype=torch.float64)
    flow = ProbabilityFlow(sde, score, rtol=1e-4, atol=1e-5)
    solution = flow.follow(z, 1.0, 0.0)
    by_sde = last(sample_sde(sde, score, z, draw, 1000))
    at = torch.tensor([0.05, 0.25, 0.5, 0.75, 0.95], dtype=torch.float64)
    line = torch.linspace(-4, 4, 8001, dtype=torch.float64)
    mass = mixture_log_prob(line[:, None]).exp().cumsum(0) / 1000
    true = torch.stack([line[(mass < q).sum()] for q in at])
    for found in (solution.last, by_sde):
        assert (found[:, 0].quantile(at) - true)[[0, 1, 3, 4]].abs().max() < 0.08
    assert solution.evaluations < 100
    assert flow.decode(z).equal(solution.last)
    again = last(sample_sde(sde, score, z, draw, 1000))
    assert (again - by_sde).abs().mean() > 0.5
