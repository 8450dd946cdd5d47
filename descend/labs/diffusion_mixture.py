"""A diffusion model learns a field of arrows that point to the data, and samples by following it.

    data      five Gaussians on a ring (σ = 0.15), points of the plane; most of the plane is empty
    field     x̂_0(x, t) − x of the trained network at noisy points, beside the exact one: E[x_0 | x_t] of the mixture
    paths     from noise without further chance (DDIM): the start decides which Gaussian is reached. Measured: how often
              the trained network's path ends at the Gaussian that the exact field leads to
    samples   by DDPM: how many of the five are found, and the share of points within 3σ of one

The exact field is known in closed form: the posterior of a mixture is a mixture.

Systems: denoising-vector-field, ddpm
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from descend.contracts import Wish
from descend.data.toys.densities import ring_of_gaussians
from descend.labs._evidence import AtLeast
from descend.labs._train import train
from descend.metrics.modes import Modes
from descend.models.denoiser_mlp import DenoiserConfig, DenoiserMLP
from descend.ops.diffusion.kernels import add_noise
from descend.ops.diffusion.plan import Plan
from descend.ops.diffusion.prediction import estimate
from descend.ops.diffusion.schedule import NoiseSchedule
from descend.sampling.chance import PerExample
from descend.sampling.diffusion.samplers import draw
from descend.tasks.denoise import Denoise, draw_noise

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("DLN-C.119",)
PRINTED = (
    "A diffusion model learns a vector field that points to data regions; the start noise decides"
    " the cluster that is reached."
)
CLAIM = "A diffusion model learns a field that points to the data; where a path ends is decided by its first noise."
PREDICTIONS = (
    AtLeast("cosine", 0.95, "Mean cosine of learned and exact arrows at the worst noise level."),
    AtLeast(
        "same end",
        0.85,
        "The share of paths that end at the Gaussian to which the exact field leads; 0.2 is chance.",
    ),
    AtLeast("modes", 5, "How many of the five Gaussians are found."),
    AtLeast("quality", 0.8, "The share of samples within 3σ of a Gaussian."),
)
SCOPE = "Five Gaussians on a ring in the plane, where the exact field is known."
PLAN = Plan(NoiseSchedule(steps=200, start=5e-4, end=0.1), method="ddim", steps=50)
MODES, BATCH, RATE, MADE, SIGMA = 5, 512, 3e-3, 2000, 0.15
BUDGET = 15.0
PRICE = 120  # steps that a second of one core buys
LEAST = 600  # steps below which nothing is said


def exact_noise(mu: Tensor, noise: NoiseSchedule = PLAN.noise) -> Any:
    """ε of the mixture: (x − √ᾱ E[x_0 | x]) / √(1 − ᾱ)."""

    def predict(x: Tensor, t: Tensor) -> Tensor:
        abar = noise.at(t, x)
        variance = abar * SIGMA**2 + 1 - abar
        away = x[:, None] - abar[:, None].sqrt() * mu
        weight = (-away.square().sum(-1) / (2 * variance)).softmax(1)
        score = -(weight[..., None] * away).sum(1) / variance
        return -score * (1 - abar).sqrt()

    return predict


def fit_network(steps: int, seed: int) -> DenoiserMLP:
    """A network trained on fresh points of the ring."""
    torch.manual_seed(seed)
    model, random = DenoiserMLP(DenoiserConfig(width=128, depth=4, plan=PLAN)), torch.Generator().manual_seed(seed)
    task, data = Denoise(model, PLAN.noise), ring_of_gaussians(MODES, 1.5, SIGMA)

    def loss() -> Tensor:
        return task.losses({"x": data.sample(BATCH, random), **draw_noise((2,), BATCH, random)}).mean()

    train(model, loss, steps, RATE)
    return model.eval()


@torch.no_grad()
def compare_fields(model: DenoiserMLP, exact: Any, x0: Tensor, seed: int) -> list[float]:
    """The cosine of learned and exact arrows, all of them as one long vector, at little, some and much noise."""
    found = []
    for t in (40, 80, 160):
        times = torch.full((len(x0),), t)
        abar = PLAN.noise.at(times, x0)
        eps = torch.randn(x0.shape, generator=torch.Generator().manual_seed(seed + t))
        x = add_noise(x0, eps, abar)
        ours, true = (estimate("eps", f(x, times), x, abar).x0 - x for f in (model, exact))
        found.append(float(torch.cosine_similarity(ours.flatten(), true.flatten(), dim=0)))
    return found


@torch.no_grad()
def measure(seed: int, budget: float) -> dict[str, Any]:
    """Fields, ends of paths, and samples."""
    steps = max(2, round(PRICE * budget))
    data = ring_of_gaussians(MODES, 1.5, SIGMA)
    mu = data.mixture.mu.float()
    with torch.enable_grad():
        model = fit_network(steps, seed)
    exact, judge = exact_noise(mu), Modes(mu, SIGMA)
    random = torch.Generator().manual_seed(seed + 1000)
    cosines = compare_fields(model, exact, data.sample(MADE, random), seed)
    start = torch.randn(MADE, 2, generator=random)
    ends = [draw(predict, start, PLAN, lambda: start) for predict in (model, exact)]
    reached = [torch.cdist(end, mu).argmin(1) for end in ends]
    made = model.generate(PerExample(seed, MADE), Wish(method="ddpm", steps=200))
    scores = {name: float(value.mean()) for name, value in judge(made).items()}
    uniform = 8 * torch.rand(MADE, 2, generator=random) - 4
    far = float((torch.cdist(uniform, mu).amin(1) > 3 * SIGMA).float().mean())
    return {
        "steps": steps,
        "noise": ["little", "some", "much"],
        "cosine": cosines,
        "same_end": float((reached[0] == reached[1]).float().mean()),
        "empty_space": far,
        "modes": scores["modes"],
        "quality": scores["quality"],
        "start": start[:300].tolist(),
        "end": ends[0][:300].tolist(),
        "reached": reached[0][:300].tolist(),
    }


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    """Of one seed, by the names of the predictions."""
    return {
        "cosine": min(numbers["cosine"]),
        "same end": numbers["same_end"],
        "modes": numbers["modes"],
        "quality": numbers["quality"],
    }


def needs(numbers: dict[str, Any]) -> float:
    """Seconds that a verdict takes, where the budget was too small for one."""
    return BUDGET if numbers["steps"] < LEAST else 0.0


def figure(numbers: dict[str, Any]) -> Figure:
    """Starts, coloured by the Gaussian that they lead to, and ends."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(8, 4), layout="constrained")
    for axes, name in zip(fig.subplots(1, 2), ("start", "end"), strict=True):
        x, y = zip(*numbers[name], strict=True)
        axes.scatter(x, y, c=numbers["reached"], cmap="tab10", s=8)
        axes.set_title({"start": "noise", "end": "where it leads"}[name], fontsize=11, loc="left", fontweight="bold")
        axes.set_aspect("equal")
        axes.spines[["top", "right"]].set_visible(False)
    return fig
