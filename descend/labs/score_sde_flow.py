"""A score learned in continuous time samples by the reverse SDE and by its probability flow, and has a likelihood.

    training    t ~ U(0, 1),  ‖ε − ε_θ(x_t, t)‖² = λ_t ‖s_θ + ε / s_t‖² with λ_t = s_t²,  x_t by the VP SDE
    SDE         dx = [f − g² s_θ] dt + g dw̄ in 250 steps of Euler-Maruyama, dt < 0
    flow        dx/dt = f − ½ g² s_θ by Dormand-Prince; evaluations are counted
    likelihood  log p by the instantaneous change of variables with the exact trace, on fresh points of the data

The data are five Gaussians (σ = 0.15) on a ring, whose entropy is known: no model can have a smaller negative
log-likelihood but by chance, so a figure below it would betray a wrong divergence.

Systems: score-sde, probability-flow-ode
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from descend.data.toys.densities import entropy, ring_of_gaussians
from descend.labs._evidence import Above, AtLeast, AtMost, Below
from descend.labs._train import train
from descend.losses.diffusion import score_matching_loss
from descend.metrics.modes import Modes
from descend.models.denoiser_mlp import DenoiserConfig, DenoiserMLP
from descend.ops.diffusion.schedule import spread
from descend.ops.diffusion.sde import VP
from descend.sampling.diffusion.flow import ProbabilityFlow
from descend.sampling.diffusion.stochastic import sample_sde

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("DLN-C.156", "DLN-C.160")
PRINTED = (
    "The probability flow has the same marginals as the SDE, an exact log-likelihood, and needs fewer evaluations."
)
CLAIM = (
    "A score learned in continuous time samples alike by the reverse SDE and by the probability flow; the flow takes"
    " fewer evaluations, and gives a likelihood near the best possible."
)
PREDICTIONS = (
    AtLeast("modes", 5, "Gaussians found, the lesser of both samplers."),
    AtLeast("quality", 0.8, "Share of samples within 3σ of one, the lesser."),
    AtMost("evaluations", 0.5, "Evaluations of the flow as a share of the SDE's."),
    Below(
        "over the exact",
        0.2,
        "Nats by which its negative log-likelihood is above the exact one.",
    ),
    Above(
        "below the exact",
        -3,
        "The same in standard errors: far below would betray a wrong divergence.",
    ),
)
SCOPE = "Five Gaussians on a ring of the plane, whose entropy is known."
SIGMA, MODES, BATCH, RATE, MADE, FIRST = 0.15, 5, 512, 3e-3, 1000, 1e-3
STEPS = 250  # of the SDE
BUDGET = 20.0
PRICE = 90
LEAST = 600


class TimedScore(torch.nn.Module):
    """s_θ(x, t) = −ε_θ(x, 1000 t) / s_t"""

    def __init__(self, sde: VP):
        super().__init__()
        self.network, self.sde = DenoiserMLP(DenoiserConfig(width=128, depth=4)), sde

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        return -self.network(x, 1000 * t) / spread(self.sde.marginal(t)[1], x)


def fit_score(sde: VP, steps: int, seed: int) -> TimedScore:
    torch.manual_seed(seed)
    score, random, data = TimedScore(sde), torch.Generator().manual_seed(seed), ring_of_gaussians(MODES, 1.5, SIGMA)

    def loss() -> Tensor:
        x0, eps = data.sample(BATCH, random), torch.randn(BATCH, 2, generator=random)
        t = FIRST + (1 - FIRST) * torch.rand(BATCH, generator=random)
        return score_matching_loss(score(sde.noised(x0, t, eps), t), eps, sde.marginal(t)[1]).mean()

    train(score, loss, steps, RATE)
    return score.eval()


def measure(seed: int, budget: float) -> dict[str, Any]:
    """Samples of both kinds, evaluations, likelihood."""
    steps = max(2, round(PRICE * budget))
    sde, data = VP(), ring_of_gaussians(MODES, 1.5, SIGMA)
    score = fit_score(sde, steps, seed)
    random = torch.Generator().manual_seed(seed + 1000)
    noise = lambda: torch.randn(MADE, 2, generator=random)
    start, judge = noise(), Modes(data.mixture.mu.float(), SIGMA)
    flow = ProbabilityFlow(sde, score, rtol=1e-3, atol=1e-4, first=FIRST)
    with torch.no_grad():
        *_, by_sde = sample_sde(sde, score, start, noise, STEPS, last=FIRST)
        solution = flow.follow(start, 1.0, FIRST)
    x = data.sample(MADE, random)
    nll = -flow.log_prob(x)
    exact = -data.log_prob(x.double())
    found = {name: judge(made) for name, made in (("sde", by_sde), ("flow", solution.last))}
    return {
        "steps": steps,
        "modes": [float(scores["modes"][0]) for scores in found.values()],
        "quality": [float(scores["quality"].mean()) for scores in found.values()],
        "evaluations": [STEPS, solution.evaluations],
        "nll": float(nll.mean()),
        "exact": float(exact.mean()),
        "entropy": entropy(data, 200),
        "error": float((nll.double() - exact).std() / MADE**0.5),
        "round_trip": float((flow.decode(flow.encode(x[:100])) - x[:100]).abs().max().detach()),
        "sde": by_sde[:300].tolist(),
        "flow": solution.last[:300].tolist(),
    }


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    """Of one seed, by the names of the predictions."""
    gap = numbers["nll"] - numbers["exact"]
    return {
        "modes": min(numbers["modes"]),
        "quality": min(numbers["quality"]),
        "evaluations": numbers["evaluations"][1] / numbers["evaluations"][0],
        "over the exact": gap,
        "below the exact": gap / numbers["error"],
    }


def needs(numbers: dict[str, Any]) -> float:
    """Seconds that a verdict takes, where the budget was too small for one."""
    return BUDGET if numbers["steps"] < LEAST else 0.0


def figure(numbers: dict[str, Any]) -> Figure:
    """Samples by the SDE and by the flow."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(8, 4), layout="constrained")
    for axes, name, calls in zip(fig.subplots(1, 2), ("sde", "flow"), numbers["evaluations"], strict=True):
        x, y = zip(*numbers[name], strict=True)
        axes.scatter(x, y, s=6, color="#2b6cd8")
        axes.set_title(f"{name}: {calls} evaluations", fontsize=11, loc="left", fontweight="bold")
        axes.set_aspect("equal")
        axes.spines[["top", "right"]].set_visible(False)
    return fig
