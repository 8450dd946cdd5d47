"""A residual network beside the ODE that it is a coarse solution of.

    residual network    z_{n+1} = z_n + f(z_n)             5 layers that share f
    neural ODE          dz/dt = f(z), t in 0..5            the same f, any solver

A 5-layer residual network learns to separate two moons. Then the same f is taken as an ODE: Euler's method with step 1
is the network itself; with finer steps its paths come nearer to the ODE's, the error halving with the step; and
Dormand-Prince reaches a small error with few evaluations at points that are not evenly spaced.

Systems: neural-ode
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn

from descend.data.toys.plane import moons
from descend.engine.minimise import minimise
from descend.labs._evidence import Above, AtLeast, Below, Within
from descend.nn.flow.ode_block import ODEBlock, ResidualNetwork
from descend.nn.flow.velocity import Velocity
from descend.ops.ode.solve import odeint
from descend.ops.ode.solver import Solver
from descend.optim.rules import Adam
from descend.optim.schedules import Cosine

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("DLN-C.83",)
PRINTED = (
    "Residual layers with shared parameters are a discretised ODE dz/dt = f(z); the number of"
    " evaluations plays the role of depth."
)
CLAIM = (
    "A residual network with shared weights is Euler's solution of an ODE with step 1: finer steps halve the distance"
    " to the ODE's end each time, and an adaptive solver with uneven steps beats Euler at equal cost by far."
)
PREDICTIONS = (
    AtLeast("step 1 is the network", 1, "1 where Euler's path with step 1 is the network's."),
    Within(
        "error halves",
        1.7,
        2.3,
        "The error at 40 steps over that at 80: 2 for a method of first order.",
    ),
    Below("error left", 1, "The error with the finest steps over that with the coarsest."),
    Above(
        "adaptive ahead",
        10,
        "Euler's error over the adaptive solver's at equal cost; refuted where it is not ahead.",
        refuted=1,
    ),
    Above("uneven steps", 1.5, "The longest step of the adaptive solver over its shortest."),
)
SCOPE = "Five layers on two moons."
LAYERS, EXAMPLES, SHOWN = 5, 256, 12
STEPS = (5, 10, 20, 40, 80)
BUDGET = 3.0
PRICE = 100  # training steps that a second of one core buys


class Autonomous(nn.Module):
    """f(z) without the time: every layer is the same."""

    def __init__(self, size: int):
        super().__init__()
        self.velocity = Velocity(size, 16, 1, nn.Tanh())
        self.velocity.time.requires_grad_(False).weight.zero_()

    def forward(self, z: torch.Tensor, t: float) -> torch.Tensor:
        out: torch.Tensor = self.velocity(z, 0.0)
        return out


def measure(seed: int, budget: float) -> dict[str, Any]:
    """Accuracy of the network, distance of Euler's and of the adaptive ends to the ODE's, points and some paths."""
    torch.manual_seed(seed)
    x, y = moons(EXAMPLES, noise=0.1, seed=seed)
    f = Autonomous(2)
    net = nn.Sequential(ResidualNetwork(f, LAYERS), nn.Linear(2, 2))
    loss = lambda: nn.functional.cross_entropy(net(x), y)
    minimise(net, loss, max(100, round(PRICE * budget)), Adam(2e-2), Cosine())
    with torch.no_grad():
        accuracy = (net(x).argmax(1) == y).double().mean().item()
        f, start, end = f.double(), x.double(), float(LAYERS)
        exact = ODEBlock(f, Solver(rtol=1e-10, atol=1e-11, most=10**6), end)(start)
        distance = lambda z: (z - exact).norm(dim=1).mean().item()
        euler = [distance(ODEBlock(f, Solver("euler", steps=n), end)(start)) for n in STEPS]
        adaptive = ODEBlock(f, Solver(rtol=1e-4, atol=1e-5), end).solve(start)
        equal = ODEBlock(f, Solver("euler", steps=adaptive.evaluations), end)(start)
        coarse = ODEBlock(f, Solver("euler", steps=LAYERS), end)
        fine = ODEBlock(f, Solver(rtol=1e-6, atol=1e-8), end)
        return {
            "accuracy": accuracy,
            "steps": list(STEPS),
            "euler": euler,
            "is_the_network": distance(ResidualNetwork(f, LAYERS)(start)) == euler[0],
            "evaluations": adaptive.evaluations,
            "adaptive": distance(adaptive.last),
            "euler_at_equal_cost": distance(equal),
            "points": adaptive.points,
            "network_paths": coarse.solve(start[:SHOWN]).z.tolist(),
            "ode_paths": fine.trajectory(start[:SHOWN], 50).tolist(),
            "ode_at_points": odeint(lambda t, z: f(z, t), start[:SHOWN], adaptive.points).z.tolist(),
        }


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    """Of one seed, by the names of the predictions."""
    errors, lengths = numbers["euler"], np.diff(numbers["points"])
    return {
        "step 1 is the network": float(numbers["is_the_network"]),
        "error halves": errors[-2] / errors[-1],
        "error left": errors[-1] / errors[0],
        "adaptive ahead": numbers["euler_at_equal_cost"] / numbers["adaptive"],
        "uneven steps": float(lengths.max() / lengths.min()),
    }


def figure(numbers: dict[str, Any]) -> Figure:
    """Three panels: the network's paths, the ODE's with its uneven steps, and the distance between their ends."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(12, 3.7), layout="constrained")
    left, middle, right = fig.subplots(1, 3)
    for axes, key, style in ((left, "network_paths", "o-"), (middle, "ode_paths", "-")):
        for line in np.asarray(numbers[key]).transpose(1, 2, 0):
            axes.plot(*line, style, ms=3, lw=1)
        axes.set_title(
            "5 residual layers" if axes is left else "the ODE, and where it was evaluated",
            fontsize=11,
            loc="left",
            fontweight="bold",
        )
    for dots in np.asarray(numbers["ode_at_points"]).transpose(1, 2, 0):
        middle.plot(*dots, ".", ms=4, color="0.3")
    right.loglog(numbers["steps"], numbers["euler"], "o-", color="#2b6cd8", label="Euler")
    right.loglog([numbers["evaluations"]], [numbers["adaptive"]], "D", color="#d66820", label="Dormand-Prince")
    right.set_xlabel("evaluations of f")
    right.set_title("distance to the ODE's end", fontsize=11, loc="left", fontweight="bold")
    right.legend(frameon=False, fontsize=9)
    for axes in (left, middle, right):
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    return fig
