"""Random features: how fast the error falls with their number is written in the spectrum of the target.

    x_i ~ N(0, i^−(1+a)), i = 1..16000       target y = Σ x_i        features F x, F Gaussian, N of them
    best linear function of the features, with endless data: error(N) = 1ᵀ (Λ − Λ Fᵀ (F Λ Fᵀ)⁻¹ F Λ) 1
    N random features find nearly the N heaviest directions, so that about Σ_{i>N} i^−(1+a) ~ N^−a is left

VOM 14.4.3.2 says that useful features grow as N^α with α < 1, without a formula.

Systems: scaling-explanations
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from descend.labs._evidence import AtLeast, Within
from descend.labs._log_lines import Curve, Panel, draw_panels
from descend.seeds import generator
from descend.theory.scaling_fit import fit_power_law

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("VOM-B.120",)
PRINTED = "Features are random and of heavy-tailed use; the number of useful ones grows as a power of the size."
CLAIM = "With random features the error is a straight line in log-log, and its slope is that of the target's spectrum."
PREDICTIONS = (
    AtLeast("least R²", 0.98, "a straight line for every spectrum; a bend would refute the power law"),
    Within("slope over a, at a = 0.5", 0.8, 1.2, "the exponent follows the spectrum: N^-a"),
    Within("slope over a, at a = 1.5", 0.8, 1.2, "also for a steep one"),
)
SCOPE = "a linear target, exact expectations over data, 8 to 512 features of 16,000 directions"
RETUNED = (
    "First measured with 4,000 directions, whose end bends the line of a = 0.5: beyond 512 features it lacks a third of"
    " what is left; and with six sets of features of each size. The slope over a was 1.21, 1.13 and 1.13, with 1.2 as"
    " its limit. Now (seeds 10 and 11) there are 16,000 directions, and 512 rows make 64 sets of 8 features, 32 of 16,"
    " and so on. The thresholds stayed."
)
BUDGET = 6.0
PRICE = 2 / 3  # draws of the features that a second buys
SLOPES, FEATURES, DIRECTIONS, LEAST = (0.5, 1.0, 1.5), (8, 16, 32, 64, 128, 256, 512), 16000, 2


def measure(seed: int, budget: float) -> dict[str, Any]:
    """Mean error over draws of the features, by spectrum and number of features."""
    draws = max(1, round(PRICE * budget))
    random = generator(seed, 1)
    columns: dict[str, Any] = {"features": list(FEATURES)}
    slopes, straight = [], []
    for a in SLOPES:
        weight = torch.arange(1, DIRECTIONS + 1, dtype=torch.float64) ** -(1 + a)
        errors = torch.zeros(draws, len(FEATURES), dtype=torch.float64)
        for draw in range(draws):
            f = torch.randn(FEATURES[-1], DIRECTIONS, generator=random, dtype=torch.float64)
            errors[draw] = left_over(weight, f)
        mean = errors.mean(0).tolist()
        fit = fit_power_law(FEATURES, mean)
        columns[f"error a={a}"] = mean
        slopes.append(fit.law.alpha)
        straight.append(fit.r_squared)
    return {**columns, "a": list(SLOPES), "slope": slopes, "r_squared": straight, "draws": draws}


def left_over(weight: Tensor, f: Tensor) -> Tensor:
    """Var[y] − the part that the best function of n features explains, for each n: mean over sets of n rows of f."""
    target, inner = f @ weight, (f * weight) @ f.T
    found = []
    for n in FEATURES:
        sets = [(target[i : i + n], inner[i : i + n, i : i + n]) for i in range(0, len(f), n)]
        t, m = (torch.stack(part) for part in zip(*sets, strict=True))
        found.append(weight.sum() - (t * torch.linalg.solve(m, t)).sum(1).mean())
    return torch.stack(found)


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    over = {a: slope / a for a, slope in zip(numbers["a"], numbers["slope"], strict=True)}
    return {
        "least R²": min(numbers["r_squared"]),
        "slope over a, at a = 0.5": over[0.5],
        "slope over a, at a = 1.5": over[1.5],
    }


def needs(numbers: dict[str, Any]) -> float:
    return 0.0 if numbers["draws"] >= LEAST else LEAST / PRICE


def figure(numbers: dict[str, Any]) -> Figure:
    """The errors of the three spectra."""
    curves = [Curve(f"a = {a}", numbers["features"], numbers[f"error a={a}"]) for a in numbers["a"]]
    return draw_panels([Panel("what is left", "features", "squared error", curves)])
