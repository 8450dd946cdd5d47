"""Initial weights and depth: a random net multiplies the second moment of its signal by the same factor in every layer.

    z_{l+1} = W φ(z_l)          q = E z_{l+1}² / E z_l² = n Var(W) / 2 for ReLU,   n Var(W) for the identity
    gradients, from layer l+1 to l, have the same factor when all widths are n

Nets of 50 layers of 128 units, fresh weights and inputs in each: Var(W) of a quarter of He's value, Xavier's, He's and
four times He's, under ReLU; Xavier's under the identity and tanh. A layer of a net, averaged over its inputs, is one
observation of q, and its expectation is exactly q. Errors are standard errors of the mean.

Also measured. Symmetry: units that start equal stay equal under gradient descent. Half precision: the layer from which
on a net with too large weights overflows 65504. Drift: the standard deviation of a residual stream x + W relu(x),
whose second moment grows by 1 + n Var(W)/2 a layer even with small weights, and that with layer normalization.

VOM 3.13 expects a layer variance near 1 for Xavier under tanh as well. It is not: tanh lowers a second moment v to
about v − 2 v², so v falls as 1/(2 l), to a hundredth after 50 layers. That is slow: it does not vanish exponentially.

Systems: signal-propagation-lab
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from descend.engine.minimise import minimise
from descend.labs._evidence import Above, AtLeast, AtMost, Below
from descend.nn.init import Rule, he, initialize, lecun, normal_, xavier
from descend.ops.activations import identity, relu, tanh
from descend.ops.normalization import layer_norm
from descend.optim.rules import SGD
from descend.theory.signal import layer_factor

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ENTRIES = ("DLN-A.79", "DLN-A.84", "MF-A.81", "VOM-A.40")
PRINTED = (
    "Under ReLU Xavier's signal decays as 2^−L and He's stays constant; identical initial"
    " parameters never differ. VOM expects a variance near 1 for Xavier under tanh (it falls as"
    " 1/(2l))."
)
CLAIM = (
    "A ReLU layer multiplies the second moment of signal and gradient by n Var(W)/2: with He's weights both keep their"
    " scale at any depth, with Xavier's they decay as 2^-L, with others they vanish or explode. Units that start equal"
    " stay equal."
)
PREDICTIONS = (
    AtMost(
        "factor off",
        1,
        "The largest distance of a factor from the closed form, in units of what is allowed: 4 standard errors or 2%.",
    ),
    AtMost("equal units differ", 0, "Spread of units that start equal, after training steps."),
    Above("random units differ", 0, "Spread of units that do not."),
    Below(
        "layer norm off",
        0.01,
        "Distance of a normalised stream's deviation from 1, the largest.",
    ),
)
CONTROLS = (AtMost("error", 0.05, "The largest standard error of a factor as a share of it."),)
PRINTED_PREDICTIONS = (
    AtLeast("tanh at the end", 0.5, "VOM's form: under tanh the variance stays near 1 with Xavier's; half is near."),
)
SCOPE = "Random nets of 50 layers of 128 units; nothing is trained."
WIDTH, DEPTH, EXAMPLES = 128, 50, 16
BUDGET = 4.0
PRICE = 18  # nets of each kind that a second of one core buys


def small(fan_in: int, fan_out: int) -> float:
    """A quarter of He's variance."""
    return he(fan_in, fan_out) / 4


def large(fan_in: int, fan_out: int) -> float:
    """Four times He's variance."""
    return 4 * he(fan_in, fan_out)


KINDS: dict[str, tuple[Rule, Callable[[Tensor], Tensor], float]] = {
    "small, relu": (small, relu, 0.5),
    "xavier, relu": (xavier, relu, 0.5),
    "he, relu": (he, relu, 0.5),
    "large, relu": (large, relu, 0.5),
    "xavier, identity": (xavier, identity, 1.0),
    "xavier, tanh": (xavier, tanh, 1.0),
}
"""Name -> variance of the weights, activation, and the share of the second moment that it keeps (tanh: near 0 only)."""


def measure(seed: int, budget: float) -> dict[str, Any]:
    """Factors forward and backward of each kind of net, and the curves of the second moment over depth."""
    nets = max(2, round(PRICE * budget))
    random = torch.Generator().manual_seed(seed)
    columns: dict[str, list[Any]] = {"net": list(KINDS)}
    curves: dict[str, dict[str, list[float]]] = {"signal": {}, "gradient": {}}
    for name, (rule, f, kept) in KINDS.items():
        columns.setdefault("factor", []).append(layer_factor(WIDTH, rule(WIDTH, WIDTH), kept))
        pairs = [propagate(rule, f, random) for _ in range(nets)]
        for way, at in (("signal", 0), ("gradient", 1)):
            squares = torch.stack([pair[at] for pair in pairs])  # (nets, depth, examples)
            ratios = (squares[:, 1:] / squares[:, :-1] if at == 0 else squares[:, :-1] / squares[:, 1:]).mean(-1)
            columns.setdefault(way, []).append(ratios.mean().item())
            columns.setdefault(f"{way}_error", []).append(float(ratios.std() / math.sqrt(ratios.numel())))
            curves[way][name] = squares.mean((0, 2)).tolist()
    plain, normed = drift(random)
    facts = {
        "nets": nets,
        "spread_of_equal_units": unit_spread(equal_, random),
        "spread_of_random_units": unit_spread(normal_, random),
        "half_overflows_at_layer": overflow_layer(random),
    }
    return {**columns, **facts, "curves": curves, "drift": {"plain": plain, "layer norm": normed}}


def propagate(rule: Rule, f: Callable[[Tensor], Tensor], random: torch.Generator) -> tuple[Tensor, Tensor]:
    """Second moments (depth, examples) of the signal z_l and of its gradient in a new net with new inputs."""
    z = torch.randn(EXAMPLES, WIDTH, generator=random).requires_grad_()
    layers = [z]
    for _ in range(DEPTH):
        w = normal_(torch.empty(WIDTH, WIDTH), rule, random)
        layers.append(f(layers[-1]) @ w.T)
    top = torch.randn(EXAMPLES, WIDTH, generator=random)
    slopes = torch.autograd.grad(layers[-1], layers, top)
    signal, gradient = (torch.stack(list(part)).detach().double().square().mean(-1) for part in (layers, slopes))
    return signal, gradient


def equal_(weight: Tensor, rule: Rule, random: torch.Generator | None = None) -> Tensor:
    """All weights the same, whatever the rule."""
    return nn.init.constant_(weight, 0.1)


def unit_spread(draw: Callable[..., Tensor], random: torch.Generator) -> float:
    """How far apart the weights of 16 hidden units are after 30 steps of gradient descent."""
    net = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))
    initialize(net, lecun, draw, random)
    x = torch.randn(64, 4, generator=random)
    y = x.prod(dim=1, keepdim=True)
    minimise(net, lambda: (net(x) - y).square().mean(), 30, SGD(0.1, momentum=0.0))
    rows = next(net.parameters()).detach()
    return (rows - rows[0]).abs().max().item()


def overflow_layer(random: torch.Generator) -> int:
    """The first layer with a number beyond float16's 65504, in a net of large weights; 0 if there is none."""
    z = torch.randn(EXAMPLES, WIDTH, generator=random)
    for layer in range(1, DEPTH + 1):
        z = (relu(z) @ normal_(torch.empty(WIDTH, WIDTH), large, random).T).half().float()
        if not z.isfinite().all():
            return layer
    return 0


def drift(random: torch.Generator) -> tuple[list[float], list[float]]:
    """The standard deviation of a residual stream after each layer, without and with layer normalization."""
    plain = normed = torch.randn(EXAMPLES, WIDTH, generator=random)
    stds: tuple[list[float], list[float]] = ([], [])
    for _ in range(DEPTH):
        w = normal_(torch.empty(WIDTH, WIDTH), small, random)
        plain, normed = plain + relu(plain) @ w.T, layer_norm(normed + relu(normed) @ w.T)
        for seen, x in zip(stds, (plain, normed), strict=True):
            seen.append(x.std(dim=-1, correction=0).mean().item())
    return stds


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    """Of one seed, by the names of the predictions."""
    rows = [i for i, name in enumerate(numbers["net"]) if "tanh" not in name]
    tanh = numbers["curves"]["signal"]["xavier, tanh"]
    ways = [(numbers[way], numbers[f"{way}_error"]) for way in ("signal", "gradient")]
    found = [(numbers["factor"][i], seen[i], errors[i]) for seen, errors in ways for i in rows]
    return {
        "factor off": max(abs(seen - q) / max(4 * error, 0.02 * q) for q, seen, error in found),
        "equal units differ": numbers["spread_of_equal_units"],
        "random units differ": numbers["spread_of_random_units"],
        "layer norm off": max(abs(std - 1) for std in numbers["drift"]["layer norm"]),
        "error": max(error / q for q, _, error in found),
        "tanh at the end": tanh[-1] / tanh[0],
    }


def figure(numbers: dict[str, Any]) -> Figure:
    """Three panels over depth: signal, gradient, and the drift of a residual stream."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(13, 3.9), layout="constrained")
    left, middle, right = fig.subplots(1, 3)
    for axes, way in ((left, "signal"), (middle, "gradient")):
        for name, values in numbers["curves"][way].items():
            axes.plot(values, lw=1.6, label=name)
        finish(axes, f"second moment of the {way}")
        axes.set_yscale("log")
    left.legend(frameon=False, fontsize=8)
    for name, values in numbers["drift"].items():
        right.plot(range(1, len(values) + 1), values, lw=1.6, label=name)
    finish(right, "deviation of a residual stream")
    right.set_yscale("log")
    right.legend(frameon=False, fontsize=8)
    return fig


def finish(axes: Axes, title: str) -> None:
    axes.set_title(title, fontsize=11, loc="left", fontweight="bold")
    axes.set_xlabel("layer")
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
