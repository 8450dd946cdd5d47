"""Dead ReLU units: no gradient, no way back; and what leaky ReLU, PReLU and ELU change.

    a = max(0, w·x + b) = 0 for every example x   ⟹   ∂L/∂w = Σ δ 1[w·x + b > 0] x = 0 exactly

A net 8 → 64 → 1 starts with a hidden bias of −4, which puts more than half of its units below 0 for all 256 examples,
and is trained by Adam. "Silent" is a unit with a negative pre-activation for every example, whatever the activation;
for ReLU that is dead. Measured for the units that start silent: the largest gradient of their weights in the first
step, and the share that is not silent any more after 200 steps.

Also measured for ReLU: the share of dead units after training from a bias of 0 at growing learning rates; and what
happens to silent units of a second hidden layer. S940 1.2 says that a dead unit never recovers. That is so in the first
layer, whose input is the data. A deeper unit sees outputs of a layer that still learns, and some come back.

Systems: dying-relu
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from descend.engine.minimise import take_steps
from descend.labs._evidence import Above, AtMost
from descend.metrics.units import dead, dead_units
from descend.nn.activations import activation
from descend.nn.init import he, initialize, normal_
from descend.optim.rules import Adam

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("S940-DLD.13", "DLN-A.38")
PRINTED = (
    "A unit whose pre-activation is negative for all inputs gets zero gradient and never recovers"
    " (erratum: only in the first layer); leaky ReLU and ELU avoid it."
)
CLAIM = (
    "A ReLU unit that sees the data and is negative for every example has a gradient of exactly 0 and never recovers;"
    " leaky ReLU, PReLU and ELU units in the same place have a gradient, and some of them come back."
)
PREDICTIONS = (
    AtMost("ReLU's gradient", 0, "The largest gradient of a silent ReLU unit: exactly 0."),
    AtMost("ReLU recovered", 0, "The share of silent ReLU units that come back."),
    Above("others' gradient", 0, "The same gradient for leaky ReLU, PReLU and ELU, the least."),
    Above("others recovered", 0, "The share that comes back, the least of the three."),
)
CONTROLS = (
    Above(
        "silent at start",
        0,
        "The least share of units that start silent: without any there is nothing to see.",
    ),
)
PRINTED_PREDICTIONS = (
    AtMost(
        "deeper recovered",
        0,
        'The printed form, "never recovers", for units of a second layer too.',
    ),
)
SCOPE = "A net 8 → 64 → 1 whose hidden biases start at −4, Adam, 200 steps."
NAMES = ("relu", "leaky-relu", "prelu", "elu")
RATES = (0.001, 0.01, 0.1, 1.0)
INPUTS, WIDTH, EXAMPLES, STEPS, BIAS = 8, 64, 256, 200, -4.0
BUDGET = 4.0
PRICE = 0.9  # rounds, each with new data and weights, that a second of one core buys


def measure(seed: int, budget: float) -> dict[str, Any]:
    """Silent units at the start and after training, their gradient, and the share that came back."""
    rounds = max(1, round(PRICE * budget))
    columns: dict[str, list[Any]] = {"activation": list(NAMES)}
    for name in NAMES:
        runs = [train(name, seed * 1000 + n, bias=BIAS) for n in range(rounds)]
        for key in runs[0]:
            seen = [run[key] for run in runs]
            columns.setdefault(key, []).append(max(seen) if key == "gradient" else sum(seen) / rounds)
    deeper = [train("relu", seed * 1000 + n, bias=BIAS, layers=2)["recovered"] for n in range(rounds)]
    after = [sum(train("relu", seed * 1000 + n, rate=r)["silent_after"] for n in range(rounds)) / rounds for r in RATES]
    return {
        **columns,
        "rounds": rounds,
        "recovered_in_a_second_layer": sum(deeper) / rounds,
        "by_rate": {"rate": list(RATES), "dead": after},
    }


def train(name: str, seed: int, bias: float = 0.0, rate: float = 0.01, layers: int = 1) -> dict[str, float]:
    """Train a net whose last hidden layer starts with this bias, and look at the silent units of that layer."""
    random = torch.Generator().manual_seed(seed)
    x = torch.randn(EXAMPLES, INPUTS, generator=random)
    y = torch.sin(x @ torch.randn(INPUTS, 1, generator=random))
    net, hidden = build(name, layers, random)
    nn.init.constant_(hidden.bias, bias)
    silent = dead_units(before(net, x))
    gradients: list[float] = []
    losses: list[float] = []
    for loss in take_steps(net, lambda: (net(x) - y).square().mean(), STEPS, Adam(rate)):
        if not losses and silent.any() and hidden.weight.grad is not None:
            gradients.append(hidden.weight.grad[silent].abs().max().item())
        losses.append(loss)
    after = before(net, x)
    back = (silent & ~dead_units(after)).sum() / silent.sum().clamp_min(1)
    return {
        "silent_at_start": silent.double().mean().item(),
        "gradient": gradients[0] if gradients else 0.0,
        "recovered": back.item(),
        "silent_after": dead(after),
        "loss": losses[-1],
    }


def build(name: str, layers: int, random: torch.Generator) -> tuple[nn.Sequential, nn.Linear]:
    """A net with this many hidden layers, He's weights, and its last hidden layer."""
    hidden = [nn.Linear(INPUTS if n == 0 else WIDTH, WIDTH) for n in range(layers)]
    parts = [part for layer in hidden for part in (layer, activation(name))]
    net = nn.Sequential(*parts, nn.Linear(WIDTH, 1))
    initialize(net, he, normal_, random)
    return net, hidden[-1]


@torch.no_grad()
def before(net: nn.Sequential, x: Tensor) -> Tensor:
    """Pre-activations of the last hidden layer: all but its activation and the output layer."""
    return net[:-2](x)


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    """Of one seed, by the names of the predictions."""
    rows = dict(zip(numbers["activation"], zip(numbers["gradient"], numbers["recovered"], strict=True), strict=True))
    gradient, back = rows.pop("relu")
    return {
        "ReLU's gradient": gradient,
        "ReLU recovered": back,
        "others' gradient": min(g for g, _ in rows.values()),
        "others recovered": min(share for _, share in rows.values()),
        "silent at start": min(numbers["silent_at_start"]),
        "deeper recovered": numbers["recovered_in_a_second_layer"],
    }


def figure(numbers: dict[str, Any]) -> Figure:
    """Two panels: silent units before and after training for each activation; dead ReLU units against the rate."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(9.5, 3.7), layout="constrained")
    left, right = fig.subplots(1, 2)
    places = range(len(numbers["activation"]))
    left.bar([p - 0.2 for p in places], numbers["silent_at_start"], 0.4, color="0.7", label="at the start")
    left.bar([p + 0.2 for p in places], numbers["silent_after"], 0.4, color="#d66820", label="after training")
    left.set_xticks(list(places), numbers["activation"])
    left.set_title("share of silent units", fontsize=11, loc="left", fontweight="bold")
    left.legend(frameon=False, fontsize=9)
    right.plot(numbers["by_rate"]["rate"], numbers["by_rate"]["dead"], "o-", color="#d66820", ms=4)
    right.set_xscale("log")
    right.set_xlabel("learning rate")
    right.set_title("dead ReLU units after training, bias 0", fontsize=11, loc="left", fontweight="bold")
    for axes in (left, right):
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    return fig
