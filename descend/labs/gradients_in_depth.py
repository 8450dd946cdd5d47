"""Gradients on their way down a deep net: by activation, initial weights, normalization and skip connections.

    δ_1 = D_1 W_2ᵀ D_2 … W_Lᵀ δ_L          ‖gradient at layer 1‖ / ‖gradient at layer L‖, at fresh weights

Nets of width 64 and depth 4 to 32. The slope of the log of the ratio against depth is the log of the gain of a layer.
"small" weights have a tenth of Xavier's deviation, "huge" ones twenty times it. Skips add x + f(x), with f scaled by
1/√L; batch normalization stands before the activation and sees a batch of 64.

Systems: vanishing-exploding-in-depth
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from descend.labs._evidence import AtLeast, AtMost, Within
from descend.labs._panels import finish, make_panels
from descend.labs._trials import buy_trials
from descend.theory.generalization.approximation import fit_slope

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("DLN-A.35", "MF-A.23", "S940-DLD.12", "VOM-B.17")
PRINTED = "Gradients vanish with depth for sigmoids, each factor being at most 1/4; they do not explode with sigmoids."
CLAIM = (
    "At the start of training the gradient of the first layer falls geometrically with depth for sigmoids with Xavier's"
    " weights and stays level for ReLU with He's. Skips and batch normalization hold it up. Sigmoids with huge weights"
    " explode."
)
PREDICTIONS = (
    AtMost("sigmoid", -1.0, "Slope of the log ratio for sigmoid, Xavier: each layer keeps at most 1/e."),
    AtLeast("straight", 0.98, "R² of that log ratio against depth: geometric means a straight line."),
    Within("relu_he", -0.1, 0.1, "Slope for ReLU with He's weights: level."),
    AtMost("tanh_small", -1.0, "Slope for tanh with small weights; good weights (tanh) must do better."),
    AtLeast("tanh_gained", 0.5, "Slope for tanh with Xavier's weights less that with small ones."),
    AtLeast("skip_gained", 0.5, "Slope for sigmoid with skips less that without."),
    AtLeast("norm_gained", 0.5, "Slope for sigmoid with batch normalization less that without."),
    AtLeast("sigmoid_huge", 0.1, "Slope for sigmoid with huge weights: it explodes."),
)
PRINTED_PREDICTIONS = (AtMost("sigmoid_huge", 0.0, "DLN: exploding gradients are not an issue with sigmoids."),)
SCOPE = "Fresh weights, width 64, to depth 32. What training does with them afterwards is not measured."
BUDGET = 2.5
PRICE, LEAST = 8, 5  # nets of each kind and depth that a second of one core buys
WIDTH, BATCH, DEPTHS = 64, 64, (4, 8, 16, 24, 32)


class Kind(NamedTuple):
    """An activation, the deviation of its weights as a multiple of 1/√width, and what stands around it."""

    activation: str
    scale: float
    around: str = ""


KINDS = {
    "sigmoid": Kind("sigmoid", 1.0),
    "sigmoid, huge": Kind("sigmoid", 20.0),
    "sigmoid, skip": Kind("sigmoid", 1.0, "skip"),
    "sigmoid, norm": Kind("sigmoid", 1.0, "norm"),
    "tanh": Kind("tanh", 1.0),
    "tanh, small": Kind("tanh", 0.1),
    "relu, he": Kind("relu", 2**0.5),
    "relu, xavier": Kind("relu", 1.0),
}


def log_norms(kind: Kind, depth: int, random: torch.Generator) -> Tensor:
    """log ‖gradient at layer l‖ − log ‖gradient at layer L‖ of one fresh net, for l = 1 … L."""
    x = torch.randn(BATCH, WIDTH, generator=random, dtype=torch.float64).requires_grad_()
    activation = getattr(torch, kind.activation)
    layers: list[Tensor] = [x]
    for _ in range(depth):
        w = kind.scale / WIDTH**0.5 * torch.randn(WIDTH, WIDTH, generator=random, dtype=torch.float64)
        z = layers[-1] @ w.T
        if kind.around == "norm":
            z = (z - z.mean(0)) / (z.var(0, correction=0) + 1e-5).sqrt()
        a = activation(z)
        layers.append(layers[-1] + a / depth**0.5 if kind.around == "skip" else a)
    top = torch.randn(BATCH, WIDTH, generator=random, dtype=torch.float64)
    slopes = torch.autograd.grad(layers[-1], layers[1:], top)
    logs = torch.stack([slope.norm() for slope in slopes]).clamp_min(1e-300).log()
    return logs - logs[-1]


def measure(seed: int, budget: float) -> dict[str, Any]:
    """The mean log ratio of every kind and depth, and of every layer at the greatest depth."""
    nets, random = buy_trials(budget, PRICE, LEAST), torch.Generator().manual_seed(seed)
    curves, layers = {}, {}
    for name, kind in KINDS.items():
        norms = [torch.stack([log_norms(kind, depth, random) for _ in range(nets)]).mean(0) for depth in DEPTHS]
        curves[name], layers[name] = [float(norm[0]) for norm in norms], norms[-1].tolist()
    slopes = [slope(curves[name]) for name in KINDS]
    found = {"net": list(KINDS), "slope": slopes, "depth": list(DEPTHS), "nets": nets}
    return {**found, "curves": curves, "layers": layers}


def slope(curve: list[float]) -> float:
    return fit_slope(torch.tensor(DEPTHS).double().exp(), torch.tensor(curve).double().exp())


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    found = dict(zip(numbers["net"], numbers["slope"], strict=True))
    line = torch.tensor([numbers["curves"]["sigmoid"], list(DEPTHS)], dtype=torch.float64)
    return {
        "sigmoid": found["sigmoid"],
        "straight": float(torch.corrcoef(line)[0, 1] ** 2),
        "relu_he": found["relu, he"],
        "tanh_small": found["tanh, small"],
        "tanh_gained": found["tanh"] - found["tanh, small"],
        "skip_gained": found["sigmoid, skip"] - found["sigmoid"],
        "norm_gained": found["sigmoid, norm"] - found["sigmoid"],
        "sigmoid_huge": found["sigmoid, huge"],
    }


def figure(numbers: dict[str, Any]) -> Figure:
    """The log ratio against depth, and layer by layer in the deepest nets."""
    fig, (left, right) = make_panels(2)
    for name, curve in numbers["curves"].items():
        left.plot(numbers["depth"], curve, "o-", ms=3, lw=1.4, label=name)
        right.plot(range(1, DEPTHS[-1] + 1), numbers["layers"][name], lw=1.4, label=name)
    finish(left, "log gradient, first layer over last", "depth")
    finish(right, f"log gradient of each of {DEPTHS[-1]} layers over the last", "layer", legend=False)
    return fig
