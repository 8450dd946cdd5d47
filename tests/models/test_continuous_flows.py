"""Neural ODEs, continuous flows and flow matching: closed forms, torchdiffeq, residual networks."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import pytest
import torch
import torchdiffeq  # type: ignore[import-untyped]
from torch import Tensor, nn

from descend.contracts import Generates, Wish
from descend.errors import Mistake
from descend.losses.flow_matching import conditional_path, velocity_error
from descend.models import cnf, flow_matching, neural_ode
from descend.nn.flow.bijection import standard_normal
from descend.nn.flow.continuous import ContinuousFlow
from descend.nn.flow.ode_block import ODEBlock, ResidualNetwork
from descend.nn.flow.velocity import Velocity
from descend.ops.ode.divergence import exact_divergence
from descend.ops.ode.solver import Solver
from descend.sampling.chance import PerExample
from descend.sampling.velocity import choose_solver, transport
from descend.theory.flow_matching import gaussian_velocity, least_error
from tests.close import close
from tests.nn.flow.jacobians import DOUBLE, integrate, points, shake

FINE = Solver(rtol=1e-9, atol=1e-10)
A = torch.tensor([[0.2, -1.0, 0.3], [0.5, -0.4, 0.0], [0.1, 0.2, -0.3]], dtype=DOUBLE)


class Linear(nn.Module):
    """f(z) = A z"""

    def forward(self, z: Tensor, t: float) -> Tensor:
        return z @ A.T


class Decay(nn.Module):
    """f(z) = −z"""

    def forward(self, z: Tensor, t: float) -> Tensor:
        return -z


def field(size: int = 2, scale: float = 1.0) -> Velocity:
    return shake(Velocity(size, 12, 2, nn.Tanh()), scale)


@pytest.mark.system("neural-ode")
@pytest.mark.system("neural-ode", "erratum")
def test_the_start_belongs_to_the_integral() -> None:
    """DLN-NeuralODE-initial-value: z(0) + ∫ f = 0.368; the printed ∫ f alone is −0.632."""
    start = torch.ones(1, 1, dtype=DOUBLE)
    end = ODEBlock(Decay(), FINE)(start)
    close(end, torch.tensor([[0.3678794412]], dtype=DOUBLE), loosen=10)
    close(end - start, torch.tensor([[-0.6321205588]], dtype=DOUBLE), loosen=10)


@pytest.mark.system("neural-ode")
@pytest.mark.system("neural-ode", "residual")
def test_euler_with_step_1_is_the_residual_network_bit_for_bit() -> None:
    f, z = field().float(), torch.randn(4, 2)
    block = ODEBlock(f, Solver("euler", steps=5), end=5.0)
    assert torch.equal(block(z), ResidualNetwork(f, 5)(z))
    assert block.evaluations == 5
    assert not torch.equal(ODEBlock(f, Solver("euler", steps=10), end=5.0)(z), ResidualNetwork(f, 5)(z))


@pytest.mark.system("neural-ode")
@pytest.mark.system("neural-ode", "depth")
def test_evaluations_grow_as_the_tolerance_falls_and_the_result_is_torchdiffeqs() -> None:
    f, z, counts = field(), points(5, 2), []
    span = torch.tensor([0.0, 1.0]).double()
    theirs = torchdiffeq.odeint(lambda t, z: f(z, t.item()), z, span, rtol=1e-10, atol=1e-11).detach()
    for tolerance in (1e-3, 1e-6, 1e-9):
        block = ODEBlock(f, Solver(rtol=tolerance, atol=tolerance))
        assert (block(z) - theirs[-1]).abs().max() < 20 * tolerance
        counts.append(block.evaluations)
    assert counts[0] < counts[1] < counts[2]
    path = block.trajectory(z, 4)
    close(path[-1], theirs[-1], loosen=100)
    assert path.shape == (5, 5, 2)


@pytest.mark.system("adjoint-sensitivity", "option")
@pytest.mark.system("adjoint-sensitivity")
def test_gradients_of_a_neural_ode_by_either_way() -> None:
    """The whole model, x to logits: the same gradients for every parameter, within the tolerance."""
    gradients = []
    for way in ("autograd", "adjoint"):
        config = replace(neural_ode.TINY, rtol=1e-8, atol=1e-8, gradient=way)
        model = shake(neural_ode.NeuralODE(config))
        (model(points(6, 5)) * points(6, 3, seed=4)).sum().backward()
        gradients.append(torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None]))
        assert model.evaluations > 6
    assert (gradients[0] - gradients[1]).norm() / gradients[0].norm() < 1e-6
    assert len(gradients[0]) == sum(p.numel() for p in model.parameters())


@pytest.mark.system("continuous-normalizing-flow")
@pytest.mark.system("continuous-normalizing-flow", "trace")
def test_a_linear_ode_changes_the_density_by_its_trace() -> None:
    """DLN-CNF-trace: −T tr A = −log|det e^{AT}| = 0.75."""
    flow, z = ContinuousFlow(Linear(), FINE), points(3, 3)
    x, log_det = flow.flow(z, 0.0, 1.5, None)
    close(-log_det, torch.full((3,), 0.75, dtype=DOUBLE))
    close(-torch.linalg.slogdet(torch.linalg.matrix_exp(1.5 * A)).logabsdet, torch.tensor(0.75))
    close(x, z @ torch.linalg.matrix_exp(1.5 * A).T, loosen=10)


@pytest.mark.system("continuous-normalizing-flow")
@pytest.mark.system("continuous-normalizing-flow", "density", "inverse")
def test_density_of_a_continuous_flow() -> None:
    """It integrates to 1, is that of torchdiffeq's solution, and there and back is the start."""
    flow = ContinuousFlow(field(scale=0.8), FINE)
    z = points(6, 2)
    x, log_det = flow(z)
    back, log_det_back = flow.inverse(x)
    close(back, z, loosen=100)  # as near as the solver's tolerance
    close(log_det_back, -log_det, loosen=100)

    def slope(t: Tensor, state: Tensor) -> Tensor:
        v, trace = exact_divergence(lambda z: flow.field(z, t.item()), state[:, :2])
        return torch.cat([v, trace[:, None]], 1)

    start = torch.cat([z, torch.zeros(6, 1, dtype=DOUBLE)], 1)
    theirs = torchdiffeq.odeint(slope, start, torch.tensor([0.0, 1.0]).double(), rtol=1e-10, atol=1e-11)[-1]
    close(x, theirs[:, :2], loosen=100)
    close(log_det, theirs[:, 2], loosen=100)
    rough = ContinuousFlow(flow.field, Solver(rtol=1e-4, atol=1e-4))

    def log_prob(x: Tensor) -> Tensor:
        z, log_det = rough.inverse(x)
        return standard_normal(z) + log_det

    assert abs(integrate(log_prob, box=7.0, cells=100) - 1) < 2e-3


@pytest.mark.system("continuous-normalizing-flow", "estimator")
@pytest.mark.system("hutchinson-trace", "unbiased")
def test_the_estimated_density_is_right_on_average() -> None:
    """Over all four sign vectors, the mean of the estimated log-determinants is the exact one."""
    flow, x = ContinuousFlow(field(), FINE), points(4, 2)
    z, exact = flow.inverse(x)
    estimates = []
    for signs in itertools.product((-1.0, 1.0), repeat=2):
        again, log_det = flow.inverse(x, torch.tensor([signs], dtype=DOUBLE).expand(4, 2))
        close(again, z, loosen=100)
        estimates.append(log_det)
    close(torch.stack(estimates).mean(0), exact, loosen=100)
    assert (estimates[0] - exact).abs().max() > 0.01


@pytest.mark.system("continuous-normalizing-flow", "estimator")
@pytest.mark.system("adjoint-sensitivity", "option")
@pytest.mark.parametrize("noise", [None, points(6, 3, seed=3)])
def test_a_likelihood_has_the_same_gradient_by_the_adjoint_method(noise: Tensor | None) -> None:
    gradients = []
    for way in ("autograd", "adjoint"):
        config = replace(cnf.TINY, rtol=1e-8, atol=1e-8, gradient=way)
        model = shake(cnf.CNF(config))
        prior, log_det = model.terms(points(6, 3), noise)
        (prior + log_det).mean().backward()
        gradients.append(torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None]))
    assert (gradients[0] - gradients[1]).norm() / gradients[0].norm() < 1e-5


@pytest.mark.system("flow-matching")
@pytest.mark.system("flow-matching", "path")
def test_the_path_and_its_velocity() -> None:
    """DLN-FlowMatching-placeholder: x_t = −0.05 with velocity −1.5; and the derivative of the path for any σ."""
    x0, x1, t = (torch.tensor([value], dtype=DOUBLE) for value in (0.4, -1.1, 0.3))
    x, u = conditional_path(x0[:, None], x1[:, None], t)
    close(x, torch.tensor([[-0.05]], dtype=DOUBLE))
    close(u, torch.tensor([[-1.5]], dtype=DOUBLE))
    a, b, times = points(5, 3), points(5, 3, seed=2), torch.rand(5, dtype=DOUBLE)
    for sigma in (0.0, 0.2):
        ahead, behind = (conditional_path(a, b, times + h, sigma)[0] for h in (1e-5, -1e-5))
        close((ahead - behind) / 2e-5, conditional_path(a, b, times, sigma)[1])
        close(conditional_path(a, b, torch.ones(5, dtype=DOUBLE), sigma)[0], sigma * a + b)
        close(conditional_path(a, b, torch.zeros(5, dtype=DOUBLE), sigma)[0], a)
    close(velocity_error(a.view(5, 1, 3), b.view(5, 1, 3)), (a - b).square().sum(1))


@pytest.mark.system("flow-matching")
@pytest.mark.system("flow-matching", "gaussian")
@pytest.mark.parametrize("sigma", [0.0, 0.3])
def test_between_gaussians_the_best_velocity_is_known(sigma: float) -> None:
    """The loss there is what theory says, any other velocity has more, and its flow takes N(0, 1) to the target."""
    n, mean, deviation = 200_000, torch.tensor([[1.0, -2.0]], dtype=DOUBLE), 0.5
    x0, x1 = points(n, 2, seed=3), mean + deviation * points(n, 2, seed=4)
    t = torch.rand(n, dtype=DOUBLE, generator=torch.Generator().manual_seed(5))
    x, u = conditional_path(x0, x1, t, sigma)
    best = gaussian_velocity(x, t[:, None], mean, deviation, sigma)
    error = velocity_error(best, u)
    expected = 2 * least_error(t, deviation, sigma)
    assert abs((error - expected).mean().item()) < 4 * (error - expected).std().item() / n**0.5
    for other in (best + 0.1, best * 1.05, best + 0.1 * torch.sin(x)):
        assert velocity_error(other, u).mean() > error.mean()
    z = points(6, 2)
    end = transport(lambda x, t: gaussian_velocity(x, t, mean, deviation, sigma), z, FINE).last
    close(end, mean + math.hypot(deviation, sigma) * z, loosen=10)


class GaussianField(nn.Module):
    def forward(self, x: Tensor, t: float) -> Tensor:
        return gaussian_velocity(x, t, torch.tensor([[1.0, -2.0]], dtype=DOUBLE), 0.5)


@pytest.mark.system("flow-matching")
@pytest.mark.system("flow-matching", "likelihood")
def test_the_likelihood_of_the_best_velocity_is_the_targets() -> None:
    config = flow_matching.FlowMatchingConfig(size=2, width=4, depth=1, rtol=1e-9, atol=1e-10)
    model = flow_matching.FlowMatching(config)
    model.flow.field = GaussianField()
    x = points(7, 2)
    close(model.log_prob(x), torch.distributions.Normal(torch.tensor([1.0, -2.0]), 0.5).log_prob(x).sum(1), loosen=100)


@pytest.mark.system("flow-matching", "sampled")
@pytest.mark.parametrize("kind", [flow_matching.FlowMatching, cnf.CNF])
def test_samples_by_euler_and_by_dormand_prince(kind: Any) -> None:
    """More steps of Euler are nearer to the adaptive solution; each example is made by its own numbers."""
    model = shake(kind(kind.Config(size=3, width=8, depth=2, rtol=1e-7, atol=1e-7))).float()
    assert isinstance(model, Generates)
    exact = model.generate(PerExample(1, 5), Wish())
    errors = [(model.generate(PerExample(1, 5), Wish(steps=n)) - exact).norm().item() for n in (10, 20, 40)]
    assert errors[0] > 1.8 * errors[1] > 3 * errors[2] > 0
    close(model.generate(PerExample(1, 5), Wish(method="rk4", steps=40)), exact, loosen=10)
    close(model.generate(PerExample(1, 5), Wish(method="rkf45")), exact, loosen=10)
    close(model.generate(PerExample(1, 1, first=3), Wish(method="euler", steps=7)),
          model.generate(PerExample(1, 5), Wish(method="euler", steps=7))[3:4])  # fmt: skip


def test_what_is_wished_for() -> None:
    assert choose_solver(Solver("dopri5", steps=10), Wish()).method == "dopri5"
    assert choose_solver(Solver("dopri5"), Wish(steps=7)) == replace(Solver("euler"), steps=7)
    assert choose_solver(Solver("rk4"), Wish(steps=7)).method == "rk4"
    with pytest.raises(Mistake, match="--steps 5: dopri5 chooses its own steps"):
        choose_solver(Solver("rk4"), Wish(steps=5, method="dopri5"))
    with pytest.raises(Mistake, match="method 'eular' is unknown"):
        choose_solver(Solver("rk4"), Wish(method="eular"))


def test_a_time_for_all_is_the_same_time_for_each() -> None:
    f, x = field(), points(4, 2)
    close(f(x, 0.3), f(x, torch.full((4,), 0.3, dtype=DOUBLE)))
    assert (f(x, 0.3) - f(x, 0.4)).abs().min() > 0


def test_weights_in_shards_are_refused() -> None:
    class Shard(nn.Parameter):
        """Not a whole weight."""

    f = field()
    f.time.weight = Shard(f.time.weight.data)
    with pytest.raises(Mistake, match=r"--parallel fsdp: a continuous flow .* use --parallel ddp"):
        ContinuousFlow(f, FINE).inverse(points(2, 2))
