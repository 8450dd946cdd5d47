"""Residual connections and the loss surface: a deep network with and without them, around what training found.

    plain        x ← relu(W x)            residual        x ← x + relu(W x) / √depth
    flatness     the mean rise of the loss over a plane of random filter-normalised directions, up to half a weight's
                 length to each side

Dense networks of 20 layers of 32 units on 400 digits, the same training for both. Plain networks are first brought to
train at all by He's weights.

Systems: loss-landscape
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from descend.interpret.landscape import draw_direction, scan_plane
from descend.labs._evidence import AtLeast, AtMost
from descend.labs._panels import finish, make_panels
from descend.labs._side_by_side import fit_copies
from descend.labs._trials import buy_trials

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("DLN-A.172", "S940-DLD.21")
PRINTED = "Plotting the error surface shows that residual connections make it smoother (no number)."
CLAIM = (
    "Around its trained weights the loss of a deep network rises less with residual connections than without, along"
    " random directions as long as the weights."
)
PREDICTIONS = (
    AtLeast("flatter", 1.5, "Mean rise over the plane of the plain network over that of the residual one."),
    AtMost("residual_loss", 0.3, "The training loss of the residual network: it was trained."),
    AtMost("plain_loss", 0.3, "That of the plain one: the comparison is between trained networks."),
)
SCOPE = "Dense networks of 20 layers on a few digits, two planes a network. The picture depends on the radius chosen."
BUDGET = 15.0
PRICE, LEAST = 0.15, 2  # pairs of networks that a second of one core buys
DEPTH, WIDTH, EXAMPLES, STEPS, RATE, RADIUS, POINTS = 20, 32, 400, 400, 0.003, 0.5, 11


class Dense(nn.Module):
    """A stem, 20 layers with or without skips, and a head."""

    def __init__(self, residual: bool) -> None:
        super().__init__()
        self.stem, self.head = nn.Linear(64, WIDTH), nn.Linear(WIDTH, 10)
        layers = [nn.Linear(WIDTH, WIDTH) for _ in range(DEPTH)]
        for layer in layers:
            nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
            nn.init.zeros_(layer.bias)
        self.layers = nn.ModuleList(layers)
        self.residual = residual

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x).relu()
        for layer in self.layers:
            x = x + layer(x).relu() / DEPTH**0.5 if self.residual else layer(x).relu()
        y: Tensor = self.head(x)
        return y


@cache
def digits() -> tuple[Tensor, Tensor]:
    from sklearn.datasets import load_digits

    pixels, labels = load_digits(return_X_y=True)
    return torch.tensor(pixels / 16, dtype=torch.float32), torch.tensor(labels)


def measure(seed: int, budget: float) -> dict[str, Any]:
    """Losses and mean rises of both kinds, and the planes of the first pair."""
    pairs, random = buy_trials(budget, PRICE, LEAST), torch.Generator().manual_seed(seed)
    torch.manual_seed(seed)
    steps = [RADIUS * (2 * i / (POINTS - 1) - 1) for i in range(POINTS)]
    steps[POINTS // 2] = 0.0
    found: dict[str, Any] = {"steps": steps, "planes": {}, "networks": pairs}
    columns: dict[str, list[float]] = {f"{k}_{w}": [] for k in ("plain", "residual") for w in ("loss", "rise")}
    for pair in range(pairs):
        x, y = draw_digits(random)
        for kind in ("plain", "residual"):
            model = Dense(kind == "residual")

            def loss(model: nn.Module = model, x: Tensor = x, y: Tensor = y) -> Tensor:
                return cross_entropy(model(x), y)

            fit_copies(model, loss, STEPS, RATE)
            first, second = (draw_direction(model, random) for _ in range(2))
            plane = scan_plane(model, lambda loss=loss: loss().item(), first, second, steps)  # type: ignore[misc]
            middle = float(plane[POINTS // 2, POINTS // 2])
            columns[f"{kind}_loss"].append(middle)
            columns[f"{kind}_rise"].append(float(plane.mean()) - middle)
            if not pair:
                found["planes"][kind] = plane.tolist()
    return {**found, **columns}


def draw_digits(random: torch.Generator) -> tuple[Tensor, Tensor]:
    """Some of the digits with their labels."""
    x, y = digits()
    chosen = torch.randperm(len(x), generator=random)[:EXAMPLES]
    return x[chosen], y[chosen]


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    mean = {key: sum(numbers[key]) / len(numbers[key]) for key in numbers if key.endswith(("_loss", "_rise"))}
    return {
        "flatter": mean["plain_rise"] / mean["residual_rise"],
        "residual_loss": mean["residual_loss"],
        "plain_loss": mean["plain_loss"],
    }


def figure(numbers: dict[str, Any]) -> Figure:
    """The two surfaces of the first pair, on one scale."""
    fig, panels = make_panels(2)
    steps, planes = numbers["steps"], numbers["planes"]
    top = max(value for plane in planes.values() for row in plane for value in row)
    for axes, kind in zip(panels, planes, strict=True):
        drawn = axes.contourf(steps, steps, planes[kind], levels=[top * (i / 14) ** 2 for i in range(15)])
        finish(axes, f"loss around a {kind} network", "first direction, filter lengths")
    fig.colorbar(drawn, ax=panels, shrink=0.8)
    return fig
