"""The loss landscape and scale: solutions of wide networks are joined by flat paths, and critical points are saddles.

    barrier      max over t of loss((1 − t) θ_a + t θ_b) − ((1 − t) loss(θ_a) + t loss(θ_b))
                 between two networks from different starts, the hidden units of b put in the order that fits a's best
                 (Hungarian method on wᵀw), on the training digits
    saddles      critical points of a random smooth function of d variables, found by Newton's method: how many have
                 curvature of both signs, and what share of their curvatures is negative

VOM 14.4.3.3 says that large networks have minima joined by low-loss paths and that saddles dominate in high dimension.
The share of negative curvatures at a random critical point is ½ at every d; what grows is the share of saddles.

Systems: scaling-explanations
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from torch import Tensor
from torch.nn import functional as F

from descend.labs._digit_classes import read_digits
from descend.labs._evidence import AtLeast, AtMost, Within
from descend.labs._log_lines import Curve, Panel, draw_panels
from descend.labs._train import train

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("VOM-B.121",)
PRINTED = (
    "Small networks have rugged landscapes; large ones have minima joined by low-loss paths, and saddles dominate."
)
CLAIM = (
    "The barrier between two aligned solutions shrinks with width, and nearly all critical points in many dimensions"
    " are saddles."
)
PREDICTIONS = (
    AtMost("barrier at the largest width over the smallest", 0.25, "a fourth or less; no fall with width refutes it"),
    AtLeast("share of saddles, d = 8", 0.9, "nine of ten or more; in one dimension there are none"),
    Within("share of negative curvatures, d = 8", 0.4, 0.6, "the share itself does not grow: half are negative"),
)
SCOPE = "one hidden layer of 4 to 128 units on 8×8 digits; random sums of waves in 1 to 8 dimensions"
BUDGET = 11.0
PRICE = 0.5  # pairs of networks of every width that a second buys
WIDTHS, STEPS, RATE, BATCH, DIMENSIONS, POINTS, LEAST = (4, 8, 16, 32, 64, 128), 250, 1e-2, 64, (1, 2, 4, 8), 200, 4

Weights = tuple[Tensor, Tensor, Tensor, Tensor]
Array = NDArray[np.float64]


def measure(seed: int, budget: float) -> dict[str, Any]:
    """Barriers by width, and critical points by dimension."""
    pairs = max(1, round(PRICE * budget))
    given, _ = read_digits()
    x, y = given.x.flatten(1), given.y
    barriers = []
    for width in WIDTHS:
        found = []
        for pair in range(pairs):
            one, other = (fit(x, y, width, 1000 * seed + 2 * pair + k) for k in (0, 1))
            found.append(measure_barrier(one, align(one, other), x, y))
        barriers.append(float(np.mean(found)))
    counted = [count_saddles(d, np.random.default_rng([seed, d])) for d in DIMENSIONS]
    return {
        "width": list(WIDTHS),
        "barrier": barriers,
        "d": list(DIMENSIONS),
        "saddles": [saddles for saddles, _ in counted],
        "negative": [negative for _, negative in counted],
        "pairs": pairs,
    }


def forward(weights: Weights, x: Tensor) -> Tensor:
    w, b, v, c = weights
    return F.relu(x @ w + b) @ v + c


def fit(x: Tensor, y: Tensor, width: int, seed: int) -> Weights:
    """A trained network of one hidden layer."""
    torch.manual_seed(seed)
    model = torch.nn.Sequential(torch.nn.Linear(x.shape[1], width), torch.nn.ReLU(), torch.nn.Linear(width, 10))
    random = torch.Generator().manual_seed(seed)

    def loss() -> Tensor:
        rows = torch.randint(len(x), (BATCH,), generator=random)
        return F.cross_entropy(model(x[rows]), y[rows])

    train(model, loss, STEPS, RATE)
    first, last = model[0], model[2]
    w, b, v, c = (p.detach() for layer in (first, last) for p in layer.parameters())
    return w.T, b, v.T, c


def align(one: Weights, other: Weights) -> Weights:
    """The other network with its hidden units in the order in which they are most like the first's."""
    like = torch.cat([one[0], one[1][None], one[2].T]).T @ torch.cat([other[0], other[1][None], other[2].T])
    _, order = linear_sum_assignment(-like.numpy())
    w, b, v, c = other
    return w[:, order], b[order], v[order], c


def measure_barrier(one: Weights, other: Weights, x: Tensor, y: Tensor) -> float:
    """The highest rise over the line between both losses, on eleven points of the path."""
    t = torch.linspace(0, 1, 11)
    losses = []
    for at in t:
        between = tuple((1 - at) * a + at * b for a, b in zip(one, other, strict=True))
        losses.append(float(F.cross_entropy(forward(between, x), y)))
    path = torch.tensor(losses)
    return float((path - ((1 - t) * path[0] + t * path[-1])).max())


def count_saddles(d: int, random: np.random.Generator) -> tuple[float, float]:
    """(share of saddles, share of negative curvatures) among critical points of Σ cos(k·x + φ)."""
    waves, phase = random.standard_normal((60, d)), 2 * np.pi * random.random(60)
    saddles, negative, found = 0, 0.0, 0
    for _ in range(40 * POINTS):
        x = 6 * random.random(d)
        for _ in range(60):
            angle = waves @ x + phase
            slope = -waves.T @ np.sin(angle)
            bend = -(waves.T * np.cos(angle)) @ waves
            step = np.linalg.solve(bend + 1e-12 * np.eye(d), slope)
            x = x - step * min(1.0, 0.5 / max(1e-12, float(np.abs(step).max())))
            if np.abs(step).max() < 1e-9:
                break
        else:
            continue
        signs = np.linalg.eigvalsh(bend) < 0
        saddles += bool(signs.any() and not signs.all())
        negative += float(signs.mean())
        found += 1
        if found == POINTS:
            break
    return saddles / found, negative / found


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    return {
        "barrier at the largest width over the smallest": numbers["barrier"][-1] / numbers["barrier"][0],
        "share of saddles, d = 8": numbers["saddles"][-1],
        "share of negative curvatures, d = 8": numbers["negative"][-1],
    }


def needs(numbers: dict[str, Any]) -> float:
    return 0.0 if numbers["pairs"] >= LEAST else LEAST / PRICE


def figure(numbers: dict[str, Any]) -> Figure:
    """The barrier over the width, and the saddles over the dimension."""
    both = [Curve(name, numbers["d"], numbers[name]) for name in ("saddles", "negative")]
    return draw_panels(
        [
            Panel("barrier", "hidden units", "nats", [Curve("aligned pairs", numbers["width"], numbers["barrier"])]),
            Panel("critical points", "dimension", "share", both, "linear"),
        ]
    )
