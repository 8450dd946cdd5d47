"""Gradient noise and flat minima: where stochastic gradient descent ends, on a line and in a network.

    near a minimum of curvature c    θ ← (1 − η c) θ: stable for c < 2/η, whatever the loss
    on a line                        two equally deep minima, a sharp one (c = 30) and a flat one (c = 1), and noise
    in a network                     λ_max of the Hessian after training with small batches and with the full batch

The line: minima at −1 and +1, L = min of two parabolas, starts uniform, η = 0.02 so that both minima are stable; the
noise has the same size everywhere. The network: 64-24-10 on 300 digits with squared errors, the same rate and the same
number of steps; sharpness of the loss over all 300, by power iteration.

Systems: gradient-noise-flat-minima
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, jvp
from torch.nn.functional import one_hot

from descend.engine.minimise import minimise
from descend.labs._evidence import AtLeast, AtMost
from descend.labs._panels import COLOURS, finish, make_panels
from descend.labs._trials import buy_trials
from descend.optim.rules import SGD

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("S940-DLD.23",)
PRINTED = "Mini-batch noise helps to escape sharp minima; SGD tends to flat ones, as it bounces out of narrow ones."
CLAIM = (
    "With step η a minimum of curvature above 2/η throws gradient descent out and one below keeps it. With noise, more"
    " walkers end in the flat of two equally deep minima than without. Small-batch training of a network ends where the"
    " loss is flatter than full-batch training does."
)
PREDICTIONS = (
    AtLeast("unstable", 1.0, "1 if c = 1.02 · 2/η was left and c = 0.98 · 2/η was not, else 0."),
    AtLeast("flat_gained", 0.15, "Share of walkers in the flat minimum with noise, less that without."),
    AtMost("sharpness", 0.8, "λ_max after batches of 4 over that after full batches; 1 would be no effect."),
)
SCOPE = "One pair of minima; one small network. Whether flat minima do better on new data is not tested."
BUDGET = 8.0
PRICE, LEAST = 0.25, 2  # networks, trained both ways, that a second of one core buys
SHARP, FLAT, LINE_RATE, NOISES = 30.0, 1.0, 0.02, (0.0, 2.0, 4.0, 6.0, 8.0)
WALKERS, WALK = 2000, 3000
EXAMPLES, HIDDEN, RATE, STEPS, BATCH = 300, 24, 0.15, 1500, 4


def measure(seed: int, budget: float) -> dict[str, Any]:
    """Shares of walkers by noise, and the sharpness that both trainings end with."""
    networks, random = buy_trials(budget, PRICE, LEAST), torch.Generator().manual_seed(seed)
    shares = [walk(noise, random) for noise in NOISES]
    small, full, loss_small, loss_full = zip(*(train_both(random) for _ in range(networks)), strict=True)
    return {
        "noise": list(NOISES),
        "share_in_flat": shares,
        "left_above": left(1.02),
        "left_below": left(0.98),
        "sharpness_small_batch": list(small),
        "sharpness_full_batch": list(full),
        "loss_small_batch": list(loss_small),
        "loss_full_batch": list(loss_full),
        "networks": networks,
    }


def left(share: float) -> float:
    """1 if gradient descent from near 0 left a minimum of curvature share · 2/η, else 0."""
    theta = torch.tensor(1e-3, dtype=torch.float64)
    for _ in range(1000):
        theta = theta - LINE_RATE * (share * 2 / LINE_RATE) * theta
    return float(theta.abs() > 1)


def walk(noise: float, random: torch.Generator) -> float:
    """The share of walkers that are nearer to the flat minimum in the end."""
    x = 4 * torch.rand(WALKERS, generator=random, dtype=torch.float64) - 2
    for _ in range(WALK):
        sharp = SHARP * (x + 1).square() < FLAT * (x - 1).square()
        slope = torch.where(sharp, SHARP * (x + 1), FLAT * (x - 1))
        x = x - LINE_RATE * (slope + noise * torch.randn(WALKERS, generator=random, dtype=torch.float64))
    return float((SHARP * (x + 1).square() >= FLAT * (x - 1).square()).double().mean())


@cache
def digits() -> tuple[Tensor, Tensor]:
    from sklearn.datasets import load_digits

    pixels, labels = load_digits(return_X_y=True)
    return torch.tensor(pixels / 16, dtype=torch.float32), one_hot(torch.tensor(labels), 10).float()


def train_both(random: torch.Generator) -> tuple[float, float, float, float]:
    """λ_max and loss on all examples after small batches and after full ones, from the same weights."""
    images, labels = digits()
    chosen = torch.randperm(len(images), generator=random)[:EXAMPLES]
    x, y = images[chosen], labels[chosen]
    torch.manual_seed(int(torch.randint(2**31, (), generator=random)))
    start = nn.Sequential(nn.Linear(64, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, 10))
    found = []
    for batch in (BATCH, EXAMPLES):
        model = nn.Sequential(nn.Linear(64, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, 10))
        model.load_state_dict(start.state_dict())

        def loss(model: nn.Module = model, batch: int = batch) -> Tensor:
            rows = torch.randint(EXAMPLES, (batch,), generator=random) if batch < EXAMPLES else slice(None)
            return (model(x[rows]) - y[rows]).square().sum(-1).mean()

        minimise(model, loss, STEPS, SGD(RATE, momentum=0.0))
        found.append((sharpness(model, x, y), (model(x) - y).square().sum(-1).mean().item()))
    (small, loss_small), (full, loss_full) = found
    return small, full, loss_small, loss_full


def sharpness(model: nn.Module, x: Tensor, y: Tensor) -> float:
    """λ_max of the Hessian of the loss over all examples, by 40 power iterations."""
    weights = {name: p.detach() for name, p in model.named_parameters()}

    def slope(weights: dict[str, Tensor]) -> dict[str, Tensor]:
        def loss(w: dict[str, Tensor]) -> Tensor:
            return (functional_call(model, w, (x,)) - y).square().sum(-1).mean()

        found: dict[str, Tensor] = grad(loss)(weights)
        return found

    v = {name: torch.ones_like(p) for name, p in weights.items()}
    size = torch.tensor(0.0)
    for _ in range(40):
        size = torch.stack([part.square().sum() for part in v.values()]).sum().sqrt()
        v = {name: part / size for name, part in v.items()}
        v = jvp(slope, (weights,), (v,))[1]
    return float(torch.stack([part.square().sum() for part in v.values()]).sum().sqrt())


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    shares, small, full = (numbers[key] for key in ("share_in_flat", "sharpness_small_batch", "sharpness_full_batch"))
    return {
        "unstable": float(numbers["left_above"] == 1 and numbers["left_below"] == 0),
        "flat_gained": shares[-1] - shares[0],
        "sharpness": sum(small) / sum(full),
    }


def figure(numbers: dict[str, Any]) -> Figure:
    """Left the line, right the networks."""
    fig, (left, right) = make_panels(2)
    left.plot(numbers["noise"], numbers["share_in_flat"], "o-", color=COLOURS[0])
    left.set_ylim(0, 1)
    finish(left, "share in the flat minimum", "noise of the gradient")
    for i, key in enumerate(("small", "full")):
        values = numbers[f"sharpness_{key}_batch"]
        right.plot([i] * len(values), values, "o", color=COLOURS[i])
    right.axhline(2 / RATE, color="0.6", ls=":", label="2/η")
    right.set_xticks([0, 1], [f"batches of {BATCH}", "full batch"])
    finish(right, "sharpness λ_max of the network", "")
    return fig
