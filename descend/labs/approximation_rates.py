"""Approximation by one hidden layer: how fast the error falls with the width, by smoothness and by dimension.

    inf over N units of ‖f_N − f‖ ~ N^(−r)        smoother targets: larger r;  more dimensions: smaller r, unless the
                                                  target has structure

N random ReLU units, output weights by least squares on 3000 points of [0, 1]^d; the error is the root mean square on
others. Targets: a smooth wave and a rough saw, both along the diagonal. The slope of log error against
log N is −r. Known in one dimension: interpolating ReLUs have N⁻² on smooth functions.

Systems: universal-approximation
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from descend.labs._evidence import AtLeast, AtMost
from descend.labs._panels import finish, make_panels
from descend.labs._trials import buy_trials
from descend.theory.generalization.approximation import fit_slope, fit_universal

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("DLN-A.23", "MF-A.57", "MF-A.58", "S940-DLD.16")
PRINTED = "Smoother targets are approximated faster; worst-case rates get slow in high dimension (no rate is printed)."
CLAIM = (
    "The error falls with the width in every dimension; it falls faster for a smooth target than for a rough one, and"
    " the slope flattens from one dimension to eight."
)
PREDICTIONS = (
    AtMost("slope_d1", -1.0, "log error against log width, smooth target, d = 1."),
    AtMost("slope_d8", -0.05, "The same in 8 dimensions: it still falls."),
    AtLeast("flatter", 0.5, "Slope in 8 dimensions less that in 1."),
    AtLeast("ordered", 0.0, "The smallest rise of the slope from d to the next of 1, 2, 4, 8: flatter at every step."),
    AtLeast("rough", 0.3, "Slope for the rough target less that for the smooth one, d = 1."),
)
SCOPE = "Random hidden weights, 8 to 256 units, one smooth and one rough target: upper bounds, not the best networks."
BUDGET = 6.0
PRICE, LEAST = 2, 2  # draws of all networks that a second of one core buys
WIDTHS, DIMENSIONS, POINTS = (8, 16, 32, 64, 128, 256), (1, 2, 4, 8), 3000


def smooth(x: Tensor) -> Tensor:
    """A wave along the diagonal, of one frequency in every dimension."""
    return (2 * math.pi * x.sum(-1) / x.shape[-1] ** 0.5).sin()


def rough(x: Tensor) -> Tensor:
    """A saw along the diagonal: Lipschitz, with kinks."""
    return (5 * x.sum(-1) / x.shape[-1] ** 0.5 + 0.3).remainder(1.0).sub(0.5).abs()


def measure(seed: int, budget: float) -> dict[str, Any]:
    """Root mean square errors by width for both targets and every dimension, geometric means over draws."""
    draws, random = buy_trials(budget, PRICE, LEAST), torch.Generator().manual_seed(seed)
    found: dict[str, Any] = {"width": list(WIDTHS), "draws": draws}
    for target in (smooth, rough):
        for d in DIMENSIONS:
            logs = torch.zeros(len(WIDTHS))
            for _ in range(draws):
                x, new = (torch.rand(n, d, generator=random, dtype=torch.float64) for n in (POINTS, 1000))
                for i, units in enumerate(WIDTHS):
                    g = fit_universal(target, x, units, torch.relu, random)
                    logs[i] += (g(new) - target(new)).square().mean().sqrt().log() / draws
            found[f"{target.__name__}_d{d}"] = logs.exp().tolist()
    return found


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    width = torch.tensor(numbers["width"])
    slopes = [fit_slope(width, torch.tensor(numbers[f"smooth_d{d}"])) for d in DIMENSIONS]
    return {
        "slope_d1": slopes[0],
        "slope_d8": slopes[-1],
        "flatter": slopes[-1] - slopes[0],
        "ordered": float(torch.tensor(slopes).diff().min()),
        "rough": fit_slope(width, torch.tensor(numbers["rough_d1"])) - slopes[0],
    }


def figure(numbers: dict[str, Any]) -> Figure:
    """Error against width, one panel for each target."""
    fig, panels = make_panels(2)
    for axes, target in zip(panels, ("smooth", "rough"), strict=True):
        for d in DIMENSIONS:
            axes.loglog(numbers["width"], numbers[f"{target}_d{d}"], "o-", ms=4, label=f"d = {d}")
        finish(axes, f"root mean square error, {target} target", "hidden units")
    return fig
