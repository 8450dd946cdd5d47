"""A posterior with two modes: a Gaussian can have one of them, a flow both; the bound comes nearer to log p(x).

    z ~ N(0, 1)     x | z ~ N(|z|, 0.2²)     p(z|x) has modes near +x and −x, each with half of the mass
    bound(K) = E_q log p(x|z) − KL(q_K(z|x) ‖ p(z)),  q_K: a Gaussian pushed through K planar maps, K = 0 and 8

The decoder is known and fixed, so only the posterior learns. log p(x) is computed by quadrature; no bound may exceed
it. The log-likelihood comes in gradually, as in Rezende and Mohamed, else one mode is lost early; for the Gaussian,
which has to choose one, at once. It loses log 2 = 0.69 nats wherever the modes are well apart.

Systems: flow-posterior-vae
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import count
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.distributions import Normal

from descend.labs._evidence import Above, Below
from descend.labs._train import train
from descend.nn.posterior import FlowPosterior
from descend.ops.latent import standard_normal_log_prob
from descend.seeds import generator

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("DLN-C.70",)
PRINTED = (
    "The Gaussian q is replaced by a Gaussian pushed through invertible maps, for multimodal posteriors (no formula)."
)
CLAIM = "A posterior bent by a flow gives a tighter bound than a Gaussian where the true posterior has two modes."
PREDICTIONS = (
    Below(
        "gap left",
        0.75,
        "The flow's gap to log p(x) as a share of the Gaussian's; near 1 it would not help.",
    ),
    Above(
        "bound below",
        -0.02,
        "The flow's gap itself, up to sampling error: no bound exceeds log p(x).",
    ),
)
SCOPE = "One latent number, a known decoder, 8 planar maps."
STEPS, NOISE, WIDTH, BATCH, SAMPLES, RATE, LEAST = (0, 8), 0.2, 32, 64, 16, 1e-2, 300
BUDGET = 6.0
PRICE = 250  # training steps, with and without flow together, that a second of one core buys


class Inference(nn.Module):
    """x (b) -> samples of q(z|x)"""

    def __init__(self, steps: int):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(1, WIDTH), nn.Tanh(), nn.Linear(WIDTH, WIDTH), nn.Tanh())
        self.posterior = FlowPosterior(WIDTH, 1, steps)
        for head in (self.posterior.mu, self.posterior.log_var) if steps else ():  # begins as the prior, on both modes
            nn.init.zeros_(head.weight)
            nn.init.zeros_(head.bias)

    def bound(self, x: Tensor, eps: Tensor, share: float = 1.0) -> Tensor:
        """The ELBO of each x, by noise (b, s, 1); while training begins, with a share of the log-likelihood."""
        found = self.posterior(self.body(x[:, None]), eps)
        likelihood = Normal(found.z[..., 0].abs(), NOISE).log_prob(x[:, None])
        return (share * likelihood + standard_normal_log_prob(found.z) - found.log_q).mean(1)


def draw(n: int, random: torch.Generator) -> Tensor:
    """x of the model itself."""
    return torch.randn(n, generator=random).abs() + NOISE * torch.randn(n, generator=random)


def exact_log_p(x: Tensor) -> Tensor:
    """log ∫ p(z) p(x|z) dz by quadrature."""
    z = torch.linspace(-8, 8, 1601, dtype=torch.float64)
    log_joint = Normal(z.abs(), NOISE).log_prob(x.double()[:, None]) + standard_normal_log_prob(z[:, None])
    return torch.logsumexp(log_joint, 1) + math.log(float(z[1] - z[0]))


def measure(seed: int, budget: float) -> dict[str, Any]:
    """The mean bound for each K, and log p(x)."""
    steps = max(5, round(PRICE * budget / 2))
    test = draw(1000, generator(seed, 2))
    bounds, worst = [], []
    exact = exact_log_p(test)
    for flow in STEPS:
        torch.manual_seed(seed)
        model, random = Inference(flow), generator(seed, 1)

        done = count(0 if flow else steps)

        def loss(model: Inference = model, random: torch.Generator = random, done: Iterator[int] = done) -> Tensor:
            share = min(1.0, 0.02 + next(done) / (0.6 * steps))
            return -model.bound(draw(BATCH, random), torch.randn(BATCH, SAMPLES, 1, generator=random), share).mean()

        train(model, loss, steps, RATE)
        with torch.no_grad():
            found = model.bound(test, torch.randn(len(test), 500, 1, generator=generator(seed, 3))).double()
        bounds.append(float(found.mean()))
        worst.append(float((found - exact).mean()))
    return {"flow_steps": list(STEPS), "bound": bounds, "gap": [-w for w in worst], "log_p": float(exact.mean()),
            "steps": steps}  # fmt: skip


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    """Of one seed, by the names of the predictions."""
    plain, bent = numbers["gap"]
    return {"gap left": bent / plain, "bound below": bent}


def needs(numbers: dict[str, Any]) -> float:
    """Seconds that a verdict takes, where the budget was too small for one."""
    return BUDGET if numbers["steps"] < LEAST else 0.0


def figure(numbers: dict[str, Any]) -> Figure:
    """The two bounds under log p(x)."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(4.6, 3.4), layout="constrained")
    axes = fig.subplots()
    axes.bar([f"K = {k}" for k in numbers["flow_steps"]], numbers["gap"])
    axes.set_ylabel("log p(x) − bound, nats")
    return fig
