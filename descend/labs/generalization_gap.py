"""The gap between population and training risk, beside its closed form.

    least squares, n examples, d Gaussian inputs, noise σ:      gap = σ² (d/n + d/(n − d − 1))

Least squares is fitted to many drawn samples with inputs of unequal scale. The population risk of a fit is exact, since
the distribution is known: σ² + (ŵ − w)ᵀ Σ (ŵ − w). One row varies the number of examples, the other that of inputs.

Systems: population-risk-and-gap
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from descend.labs._evidence import AtLeast, AtMost, Within
from descend.labs._panels import COLOURS, finish, make_panels
from descend.labs._trials import buy_trials
from descend.theory.generalization.approximation import fit_slope
from descend.theory.generalization.risk import least_squares_risks

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("MF-A.65", "S940-DLD.173")
PRINTED = "The generalization gap is the population risk less the training risk of the trained parameters (no number)."
CLAIM = (
    "After least squares the gap is σ² (d/n + d/(n − d − 1)) on average, whatever the weights and the scales of the"
    " inputs: it falls somewhat faster than 1/n and grows with the size of the model."
)
PREDICTIONS = (
    AtMost("off_closed_form", 0.1, "The mean gap of a cell over its closed form, less 1, in the worst of all cells."),
    Within("slope_in_n", -1.35, -1.0, "log gap against log n, d = 5, n = 15 to 240; −1 would be 1/n exactly."),
    AtLeast("growth_in_d", 10.0, "The gap at d = 32 over that at d = 2, n = 60; 16 if it grew in proportion to d."),
)
SCOPE = "Linear models with Gaussian inputs, at most 240 examples. Nothing is said of networks or of worst cases."
BUDGET = 4.0
PRICE, LEAST = 5000, 2000  # samples of each size that a second of one core buys; the fewest that tell
NOISE = 0.7
SIZES = [(15, 5), (30, 5), (60, 5), (120, 5), (240, 5), (60, 2), (60, 8), (60, 16), (60, 32)]


def measure(seed: int, budget: float) -> dict[str, Any]:
    """Mean training and population risk for every (n, d)."""
    trials, random = buy_trials(budget, PRICE, LEAST), torch.Generator().manual_seed(seed)
    columns: dict[str, list[float]] = {key: [] for key in ("examples", "inputs", "training", "population", "predicted")}
    for n, d in SIZES:
        scale = torch.logspace(-1, 1, d, dtype=torch.float64)
        w = torch.randn(d, generator=random, dtype=torch.float64)
        x = torch.randn(trials, n, d, generator=random, dtype=torch.float64) * scale
        y = x @ w + NOISE * torch.randn(trials, n, generator=random, dtype=torch.float64)
        fit = torch.linalg.lstsq(x, y[..., None]).solution
        training = ((x @ fit)[..., 0] - y).square().mean()
        population = NOISE**2 + (scale * (fit[..., 0] - w)).square().sum(-1).mean()
        row = (n, d, float(training), float(population), least_squares_risks(n, d, NOISE).gap)
        for key, value in zip(columns, row, strict=True):
            columns[key].append(value)
    return {**columns, "samples": trials}


def gaps(numbers: dict[str, Any]) -> torch.Tensor:
    return torch.tensor(numbers["population"]) - torch.tensor(numbers["training"])


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    gap = gaps(numbers)
    return {
        "off_closed_form": float((gap / torch.tensor(numbers["predicted"]) - 1).abs().max()),
        "slope_in_n": fit_slope(torch.tensor(numbers["examples"][:5]), gap[:5]),
        "growth_in_d": float(gap[8] / gap[5]),
    }


def figure(numbers: dict[str, Any]) -> Figure:
    """The gap against the examples, and against the inputs."""
    fig, panels = make_panels(2)
    gap = gaps(numbers).tolist()
    for axes, rows, name in (
        (panels[0], [0, 1, 2, 3, 4], "examples"),
        (panels[1], [5, 2, 6, 7, 8], "inputs"),
    ):
        x = [numbers[name][i] for i in rows]
        axes.loglog(x, [numbers["predicted"][i] for i in rows], color="0.6", lw=5, alpha=0.5, label="closed form")
        axes.loglog(x, [gap[i] for i in rows], "o", color=COLOURS[1], label="measured")
        finish(axes, f"gap against {name}", name)
    return fig
