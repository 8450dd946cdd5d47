"""Energy collapse, and what prevents it: contrast, stop-gradient, a moving average, a limited code.

    pairs (x, y)     E(x, y) ≥ 0 of a network, data y = sin 2x. Trained with E(data) alone the surface becomes flat;
                     with a hinge against other y it keeps a gap
    joint embedding  two noisy views of a digit, E = 1 − cos(p(f(x)), f'(x')). One trainer, four switches:
                       none            f' = f: everything is embedded at one point
                       contrast        f' = f, and other digits are pushed apart by a hinge
                       stop-gradient   f' = f, constant for the gradient, and a predictor p (SimSiam)
                       average         f' a moving average of f, and a predictor p (BYOL)
                     measured: the spread of the embeddings on the unit sphere, times √d: 1 for random directions
    limited code     E = ‖x − Dec(Enc(x))‖² of digits with a code of 8 numbers, and with one as large as the image

Systems: energy-collapse
"""

from __future__ import annotations

import copy
import math
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize, softplus

from descend.data.images.digits import load_digits_split
from descend.engine.minimise import minimise, take_steps
from descend.labs._evidence import Above, Below
from descend.losses.energy import energy_hinge, spread_of
from descend.optim.rules import Adam

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("DLN-C.92", "DLN-C.107")
PRINTED = (
    "A bad surface is flat because the input is ignored; limited latent capacity, stop-gradient or"
    " a momentum encoder prevent collapse without negatives."
)
CLAIM = (
    "An energy that is only pulled down at the data collapses; contrast, stop-gradient, a moving average or a limited"
    " code each prevent it."
)
PREDICTIONS = (
    Below("gap alone", 0.05, "The gap of the energy without contrast, in absolute value."),
    Below(
        "spread without",
        0.2,
        "Spread of the embeddings without prevention; 1 for random directions.",
    ),
    Above("gap with contrast", 0.5, "The gap with contrast."),
    Above("spread with", 0.5, "Spread with each prevention, the least."),
    Below(
        "full code",
        0.05,
        "Energy of sums of digits with a full code as a share of that with a narrow one.",
    ),
    Above(
        "narrow code",
        2,
        "With the narrow code, energy of sums of digits over that of digits.",
    ),
)
SCOPE = "Small networks: a curve y = sin 2x, embeddings and codes of 8×8 digits."
SWITCHES = ("none", "contrast", "stop-gradient", "average")
WIDTH, CODE, BATCH, NOISE, KEEP = 64, 16, 128, 0.3, 0.98
BUDGET = 6.0
PRICE = 40  # steps of each of the eight trainings that a second of one core buys
LEAST = 200


def make_network(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(inputs, WIDTH), nn.BatchNorm1d(WIDTH), nn.ReLU(), nn.Linear(WIDTH, outputs))


class Pairs(nn.Module):
    """E(x, y) ≥ 0"""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(2, WIDTH), nn.SiLU(), nn.Linear(WIDTH, WIDTH), nn.SiLU(), nn.Linear(WIDTH, 1)
        )

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return softplus(self.net(torch.stack([x, y], 1)).squeeze(1))


def measure_pairs(contrast: bool, steps: int, seed: int) -> float:
    """Energy off the data minus energy at the data."""
    torch.manual_seed(seed)
    model, random = Pairs(), torch.Generator().manual_seed(seed)

    def loss() -> Tensor:
        x = 4 * torch.rand(BATCH, generator=random) - 2
        other = (2 * x).sin() + torch.randn(BATCH, generator=random)
        data = model(x, (2 * x).sin())
        return energy_hinge(data, model(x, other), 1.0).mean() if contrast else data.mean()

    minimise(model, loss, steps, Adam(5e-3))
    x = torch.linspace(-2, 2, 200)
    with torch.no_grad():
        off = torch.stack([model(x, (2 * x).sin() + shift) for shift in (-1.0, 1.0)]).mean()
        return float(off - model(x, (2 * x).sin()).mean())


class Embedder(nn.Module):
    """f, its moving average and the predictor p; only f and p are trained."""

    def __init__(self) -> None:
        super().__init__()
        self.f, self.p = make_network(64, CODE), make_network(CODE, CODE)
        self.slow = copy.deepcopy(self.f).requires_grad_(False)


def measure_embedding(switch: str, images: Tensor, steps: int, seed: int) -> float:
    """The spread of the embeddings after training with one of the switches."""
    torch.manual_seed(seed)
    model, random = Embedder(), torch.Generator().manual_seed(seed)

    def view(x: Tensor) -> Tensor:
        return x + NOISE * torch.randn(x.shape, generator=random)

    def loss() -> Tensor:
        x = images[torch.randint(len(images), (BATCH,), generator=random)]
        one, two = view(x), view(x)
        if switch in ("none", "contrast"):
            a, b = normalize(model.f(one)), normalize(model.f(two))
            near = 1 - (a * b).sum(1)
            far = 1 - (a * b.roll(1, 0)).sum(1)
            return near.mean() if switch == "none" else energy_hinge(near, far, 1.0).mean()
        target = model.f if switch == "stop-gradient" else model.slow
        with torch.no_grad():
            b = normalize(target(two))
        return (1 - (normalize(model.p(model.f(one))) * b).sum(1)).mean()

    for _ in take_steps(model, loss, steps, Adam(3e-3)):
        with torch.no_grad():
            for old, new in zip(model.slow.parameters(), model.f.parameters(), strict=True):
                old.lerp_(new, 1 - KEEP)
    with torch.no_grad():
        return float(spread_of(normalize(model.f.eval()(images)))) * math.sqrt(CODE)


def measure_code(size: int, images: Tensor, steps: int, seed: int) -> tuple[float, float]:
    """Mean energy of digits, and of sums a − b + c of three of them: no digits, but made of the same parts."""
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(64, size), nn.Linear(size, 64))
    random = torch.Generator().manual_seed(seed)

    def loss() -> Tensor:
        x = images[torch.randint(len(images), (BATCH,), generator=random)]
        return (model(x) - x).square().sum(1).mean()

    minimise(model, loss, 3 * steps, Adam(5e-3))
    a, b, c = images[torch.randint(len(images), (3, 500), generator=random)]
    other = a - b + c
    with torch.no_grad():
        data, off = ((model(x) - x).square().sum(1).mean() for x in (images, other))
    return float(data), float(off)


def measure(seed: int, budget: float) -> dict[str, Any]:
    """Gaps, spreads and energies."""
    steps = max(2, round(PRICE * budget))
    images = load_digits_split().train.x.flatten(1)
    images = (images - images.mean()) / images.std()
    spreads = [measure_embedding(switch, images, steps, seed) for switch in SWITCHES]
    codes = {f"{name}_code": list(measure_code(k, images, steps, seed)) for name, k in (("narrow", 8), ("full", 64))}
    gaps = {"gap_alone": measure_pairs(False, steps, seed), "gap_contrast": measure_pairs(True, steps, seed)}
    return {"switch": list(SWITCHES), "spread": spreads, **gaps, **codes, "steps": steps}


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    """Of one seed, by the names of the predictions."""
    none, *kept = numbers["spread"]
    digits, sums = numbers["narrow_code"]
    return {
        "gap alone": abs(numbers["gap_alone"]),
        "spread without": none,
        "gap with contrast": numbers["gap_contrast"],
        "spread with": min(kept),
        "full code": numbers["full_code"][1] / sums,
        "narrow code": sums / digits,
    }


def needs(numbers: dict[str, Any]) -> float:
    """Seconds that a verdict takes, where the budget was too small for one."""
    return BUDGET if numbers["steps"] < LEAST else 0.0


def figure(numbers: dict[str, Any]) -> Figure:
    """Three bar charts: gaps, spreads, energies."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(10, 3), layout="constrained")
    left, middle, right = fig.subplots(1, 3)
    left.bar(["E(data) alone", "hinge"], [numbers["gap_alone"], numbers["gap_contrast"]])
    left.set_title("gap of the energy")
    middle.bar(numbers["switch"], numbers["spread"])
    middle.tick_params(axis="x", rotation=20)
    middle.set_title("spread of embeddings")
    names = ("narrow_code", "full_code")
    right.bar([0, 1], [numbers[name][0] for name in names], 0.4, label="digits")
    right.bar([0.4, 1.4], [numbers[name][1] for name in names], 0.4, label="sums of digits")
    right.set_xticks([0.2, 1.2], ["narrow code", "full code"])
    right.set_title("energy")
    right.legend()
    return fig
