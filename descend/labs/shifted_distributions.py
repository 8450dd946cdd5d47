"""One distribution is shifted over another: what Jensen–Shannon, Wasserstein and their trained judges say of it.

    true U(0, 1), generated U(θ, θ + 1),  θ = 0, ½, 1, 2, 3

    JS          exact: min(θ, 1) log 2, so log 2 for EVERY θ ≥ 1        W₁ exact: θ
    judges      a discriminator (cross-entropy) and a critic (Wasserstein, spectral norms), two hidden layers of 64
    slope       |∂/∂θ| of the generator's loss: log(1 − D) for the discriminator, −f for the critic

Then a Wasserstein GAN with CLIPPED weights learns N(2, ½²) on a line from N(−1, 1), five critic moves for one of the
generator; its gap is recorded beside the true W₁ of generated and real points, by sorting. (The clipped critic's own
Lipschitz constant is unknown, so the gap is W₁ up to a factor, and up to what its small weights can express.)

Systems: js-versus-wasserstein, wgan
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from descend.data.streams.arrays import Drawn
from descend.engine.distributed import World
from descend.engine.loop import Loop
from descend.engine.parts import Parts
from descend.engine.training import Training
from descend.labs._evidence import Above, AtLeast, AtMost, Below
from descend.labs._train import train
from descend.losses.adversarial import Wasserstein, discriminator_loss, saturating
from descend.models.gan import Discriminator, GANConfig, Generator
from descend.nn.adversarial.spectral import normalize_spectrum
from descend.ops.adversarial_game import jensen_shannon, wasserstein_of_samples
from descend.optim.rules import RMSprop
from descend.optim.schedules import Constant
from descend.tasks.adversarial import Adversarial, GameRules

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("S940-DLD.107", "DLN-C.53", "S940-DLD.108")
PRINTED = "JS saturates at log 2 for disjoint supports and gives no gradient; the earth mover's distance does not."
CLAIM = (
    "Where two distributions do not overlap, the Jensen-Shannon divergence is log 2 at every distance and its"
    " discriminator gives no gradient; the Wasserstein distance and its critic go on telling how far and which way."
)
PREDICTIONS = (
    Below(
        "JS off",
        1e-9,
        "The largest distance of the exact JS from log 2 where nothing overlaps (θ ≥ 2).",
    ),
    Below("discriminator's slope", 0.05, "The largest slope of its loss there: no gradient."),
    Above("critic's slope", 0.8, "The least slope of the critic's there."),
    Below("critic's most", 1.001, "The largest: a critic is 1-Lipschitz."),
    Above("gap too small", -0.05, "The least of gap − 0.8 W₁ over all θ."),
    Below("gap too large", 0.05, "The largest of gap − W₁."),
    AtLeast("correlation", 0.9, "Of gap and W₁ during the game."),
    AtMost("distance left", 1 / 3, "The last W₁ as a share of the first."),
)
SCOPE = "Uniform distributions of a line, judges of two hidden layers of 64, one clipped Wasserstein game."
SHIFTS = (0.0, 0.5, 1.0, 2.0, 3.0)
BATCH, BINS = 256, 1000
BUDGET = 20.0
PRICE = 20  # training steps of each judge that a second of one core buys; the game takes as many
ENOUGH = 200  # steps below which nothing is said
CLIP, MOVES, EVERY, FIRST = 0.1, 5, 10, 2  # the first two records, before the critic has learned, do not count


def known(theta: float) -> tuple[float, float]:
    """JS of the two, in cells of 1/1000, and W₁ of points spread evenly."""
    p, q = torch.zeros(2, 5 * BINS, dtype=torch.float64)
    p[:BINS] = q[round(theta * BINS) : round(theta * BINS) + BINS] = 1 / BINS
    x = (torch.arange(BINS, dtype=torch.float64) + 0.5) / BINS
    return float(jensen_shannon(p, q)), float(wasserstein_of_samples(x, x + theta))


def judge(theta: float, steps: int, seed: int) -> dict[str, float]:
    """What a trained discriminator and a trained critic say of θ."""
    torch.manual_seed(seed)
    d, f = Discriminator(1, 64, 2), normalize_spectrum(Discriminator(1, 64, 2))
    random = torch.Generator().manual_seed(seed)

    def draw() -> tuple[Tensor, Tensor]:
        x, y = torch.rand(2, BATCH, 1, generator=random)
        return x, y + theta

    def of_d() -> Tensor:
        x, y = draw()
        return discriminator_loss(d(x), d(y))

    def of_f() -> Tensor:
        x, y = draw()
        return f(y).mean() - f(x).mean()

    train(d, of_d, steps, 1e-2)
    train(f, of_f, steps, 1e-2)
    u = torch.rand(2, 4000, 1, generator=random)
    shift = torch.tensor(theta, requires_grad=True)
    slopes = [torch.autograd.grad(loss, shift)[0] for loss in (saturating(d(u[1] + shift)), -f(u[1] + shift).mean())]
    with torch.no_grad():
        value = (math.log(4) - float(discriminator_loss(d(u[0]), d(u[1] + theta)))) / 2
        gap = float(f(u[0]).mean() - f(u[1] + theta).mean())
    return {"js": value, "gap": gap, "js_slope": abs(float(slopes[0])), "w1_slope": abs(float(slopes[1]))}


def follow(steps: int, seed: int) -> tuple[list[float], list[float]]:
    """The critic's gap and the true W₁ while a Wasserstein GAN learns a distribution on a line."""
    torch.manual_seed(seed)
    g, d = Generator(GANConfig(1, 1, 32, 1)), Discriminator(1, 64, 2)
    with torch.no_grad():
        g.out.bias.fill_(-1.0)

    def draw(random: torch.Generator, n: int) -> dict[str, Tensor]:
        x, z = torch.randn(2, n, 1, generator=random)
        return {"x": 2 + 0.5 * x, "z": z}

    quality = lambda made: {"mean": made[:, 0]}
    task = Adversarial(g, d, quality, GameRules(Wasserstein(), clip=CLIP, d_moves=MOVES))
    rules = {"d": RMSprop(2e-3), "g": RMSprop(2e-3)}
    parts = Parts(task, g, Drawn(draw, MOVES * BATCH, seed), (), rules)  # type: ignore[arg-type]
    loop = Loop(steps, MOVES * BATCH, seed=seed, precision="float32", compile="off")
    training, fixed = Training(parts, loop, Constant(), World()), draw(torch.Generator().manual_seed(seed + 1), 4000)
    gaps, distances, seen = [], [], []
    for step in range(1, steps + 1):
        seen.append(training.advance()["critic_gap"])
        if step % EVERY == 0:
            with torch.no_grad():
                distances.append(float(wasserstein_of_samples(fixed["x"][:, 0], g(fixed["z"])[:, 0])))
            gaps.append(sum(seen) / len(seen))
            seen = []
    return gaps, distances


def correlation(x: list[float], y: list[float]) -> float:
    """Pearson's r."""
    return float(torch.corrcoef(torch.tensor([x, y], dtype=torch.float64))[0, 1])


def measure(seed: int, budget: float) -> dict[str, Any]:
    """All of it, against θ; and the game on a line."""
    steps = max((FIRST + 2) * EVERY, round(PRICE * budget))
    found = [judge(theta, steps, seed) for theta in SHIFTS]
    exact = [known(theta) for theta in SHIFTS]
    gaps, distances = follow(steps, seed)
    columns = {name: [one[name] for one in found] for name in found[0]}
    return {
        "theta": list(SHIFTS),
        "exact_js": [js for js, _ in exact],
        "exact_w1": [w1 for _, w1 in exact],
        **columns,
        "steps": steps,
        "correlation": correlation(gaps[FIRST:], distances[FIRST:]),
        "first_distance": distances[0],
        "last_distance": distances[-1],
        "gaps": gaps,
        "distances": distances,
    }


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    """Of one seed, by the names of the predictions."""
    apart = [i for i, theta in enumerate(numbers["theta"]) if theta >= 2]
    gaps = list(zip(numbers["gap"], numbers["exact_w1"], strict=True))
    slopes = [numbers["w1_slope"][i] for i in apart]
    return {
        "JS off": max(abs(numbers["exact_js"][i] - math.log(2)) for i in apart),
        "discriminator's slope": max(numbers["js_slope"][i] for i in apart),
        "critic's slope": min(slopes),
        "critic's most": max(slopes),
        "gap too small": min(gap - 0.8 * w for gap, w in gaps),
        "gap too large": max(gap - w for gap, w in gaps),
        "correlation": numbers["correlation"],
        "distance left": numbers["last_distance"] / numbers["first_distance"],
    }


def needs(numbers: dict[str, Any]) -> float:
    """Seconds that a verdict takes, where the budget was too small for one."""
    return BUDGET if numbers["steps"] < ENOUGH else 0.0


def figure(numbers: dict[str, Any]) -> Figure:
    """JS and W₁ against the shift; gap and W₁ during the game."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(8, 3.6), layout="constrained")
    left, right = fig.subplots(1, 2)
    left.plot(numbers["theta"], numbers["exact_js"], "-", color="#d66820", label="JS")
    left.plot(numbers["theta"], numbers["js"], "o", color="#d66820", label="of a discriminator")
    left.plot(numbers["theta"], numbers["exact_w1"], "-", color="#2b6cd8", label="W₁")
    left.plot(numbers["theta"], numbers["gap"], "o", color="#2b6cd8", label="of a critic")
    left.set_xlabel("shift θ")
    left.legend(frameon=False)
    steps = [EVERY * (i + 1) for i in range(len(numbers["gaps"]))]
    scale = max(numbers["distances"]) / max(numbers["gaps"])
    right.plot(steps, numbers["distances"], color="#2b6cd8", label="W₁")
    right.plot(steps, [scale * gap for gap in numbers["gaps"]], color="#2a9d62", label="critic's gap, scaled")
    right.set_xlabel("step of a Wasserstein GAN")
    right.legend(frameon=False)
    for axes in (left, right):
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    return fig
