"""Does the best learning rate of a small model serve a large one?

    rule         lr ∝ N^−½; with N ∝ width² that is lr ∝ 1 / width
    measured     networks of one hidden layer on a block of two equal widths, standard weights, Adam; the best of a grid
                 of rates (`find_optimum`), its exponent in N, and what the small model's rate costs the large one

A teacher network makes the data, so that the largest student is still too small. VOM 14.7.2 states the rule; S940 and
DLD 11.7 only warn that the best values may not transfer.

Systems: hyperparameter-transfer
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from descend.errors import Mistake
from descend.labs._evidence import AtLeast, AtMost, Within
from descend.labs._log_lines import Curve, Panel, draw_panels
from descend.labs._train import train
from descend.seeds import generator
from descend.theory.hyperparameter_transfer import find_optimum, measure_exponent

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("VOM-B.133", "S940-DLD.223")
PRINTED = "The best learning rate goes with N^-0.5; the best values at small scale may not be the best at large scale."
CLAIM = "The best learning rate falls as the model grows, so that a small model's is too large for a large one."
PREDICTIONS = (
    AtMost("exponent in N", -0.1, "the best rate falls by a fifth or more for ten times the size; 0: rates transfer"),
    AtLeast("loss with the small model's rate, over the best", 1.02, "the large model pays 2% or more for it"),
)
PRINTED_PREDICTIONS = (Within("exponent in N", -0.6, -0.4, "the printed rule is -0.5"),)
SCOPE = "multilayer perceptrons of 400 to 70,000 parameters, Adam, standard parametrisation, 300 steps"
BUDGET = 10.0
PRICE = 30.0  # steps of every model and rate that a second buys
WIDTHS, RATES = (16, 48, 256), tuple(10 ** (-3.25 + 0.375 * k) for k in range(9))
INPUTS, BATCH, LEAST = 8, 128, 150


def measure(seed: int, budget: float) -> dict[str, Any]:
    """Held-out loss by width and rate."""
    steps = max(5, round(PRICE * budget))
    torch.manual_seed(seed)
    teacher = nn.Sequential(nn.Linear(INPUTS, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1))
    with torch.no_grad():
        for layer in teacher:
            if isinstance(layer, nn.Linear):
                layer.weight.normal_(0, 2.0 / math.sqrt(layer.in_features))
        held = torch.randn(2000, INPUTS, generator=generator(seed, 2))
        truth = teacher(held)
    columns: dict[str, Any] = {"rate": list(RATES)}
    sizes, best = [], []
    for width in WIDTHS:
        losses = []
        for rate in RATES:
            torch.manual_seed(seed)
            model = build(width)
            random = generator(seed, 1)

            def loss(model: nn.Module = model, random: torch.Generator = random) -> torch.Tensor:
                x = torch.randn(BATCH, INPUTS, generator=random)
                with torch.no_grad():
                    y = teacher(x)
                return (model(x) - y).square().mean()

            train(model, loss, steps, rate)
            with torch.no_grad():
                losses.append(float((model(held) - truth).square().mean() / truth.var()))
        columns[f"loss, width {width}"] = losses
        sizes.append(sum(p.numel() for p in model.parameters()))
        best.append(place_bottom(losses))
    return {**columns, "parameters": sizes, "best_rate": best, "steps": steps}


def build(width: int) -> nn.Sequential:
    """Two hidden layers of this width."""
    return nn.Sequential(nn.Linear(INPUTS, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1))


def place_bottom(losses: list[float]) -> float:
    """The best rate of a sweep; where it is the first or the last, the bottom lies outside and this is its end."""
    try:
        return find_optimum(RATES, [math.log(value) for value in losses])
    except Mistake:
        return RATES[losses.index(min(losses))]


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    large = numbers[f"loss, width {WIDTHS[-1]}"]
    gap = lambda rate: abs(math.log(rate / numbers["best_rate"][0]))
    nearest = min(range(len(RATES)), key=lambda i: gap(RATES[i]))
    return {
        "exponent in N": measure_exponent(numbers["parameters"], numbers["best_rate"]),
        "loss with the small model's rate, over the best": large[nearest] / min(large),
    }


def needs(numbers: dict[str, Any]) -> float:
    return 0.0 if numbers["steps"] >= LEAST else LEAST / PRICE


def figure(numbers: dict[str, Any]) -> Figure:
    """The loss over the rate for each width, and the best rates over the size beside the rule."""
    curves = [Curve(f"width {w}", numbers["rate"], numbers[f"loss, width {w}"]) for w in WIDTHS]
    n, best = numbers["parameters"], numbers["best_rate"]
    rule = [best[0] * (x / n[0]) ** -0.5 for x in n]
    return draw_panels(
        [
            Panel("held-out loss", "learning rate", "over the variance", curves),
            Panel("best rate", "parameters", "learning rate", [Curve("measured", n, best), Curve("N^-0.5", n, rule)]),
        ]
    )
