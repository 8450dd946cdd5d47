"""Does the exponent depend on the shape of the transformer?

    three shapes: 1, 2 and 4 blocks, four widths each, the same steps at every size; L − entropy = (N_c / N)^α for each
    gap over error   |α_i − α_j| / √(se_i² + se_j²), the largest of the three pairs, as multiples of the 5% bound of t

VOM 14.4.3.4 takes the exponents for those of a universality class, fixed as at a critical point, and gives no formula:
too vague to test as such. If exponents are universal, shapes share them; that alone is tested.

Systems: scaling-explanations
"""

from __future__ import annotations

import math
from itertools import combinations
from typing import TYPE_CHECKING, Any

from scipy.stats import t as student

from descend.errors import Mistake
from descend.labs._evidence import AtLeast, AtMost, NeedsMore
from descend.labs._log_lines import Curve, Panel, draw_panels
from descend.labs._word_source import Source, build, count_inner, held_out_loss, learn
from descend.theory.scaling_fit import fit_power_law

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("VOM-B.122",)
PRINTED = "Training near the interpolation threshold is a critical point; exponents are fixed for a universality class."
CLAIM = "Transformers of one, two and four blocks have the same exponent within their errors."
PREDICTIONS = (
    AtMost("largest gap over its 5% bound", 1.0, "beyond 1 two shapes differ for sure"),
    AtLeast("least R²", 0.9, "each shape has a line whose exponent can be compared"),
)
SCOPE = "three depths, four widths each, 16-fold sizes; equal exponents do not show that criticality is the cause"
BUDGET = 20.0
PRICE = 1 / 20  # of all models that a second buys
LEAST = 0.05  # of them, below which nothing is to be seen
SHAPES = {1: (8, 13, 20, 36), 2: (6, 9, 14, 25), 4: (4, 7, 10, 18)}
STEPS, BATCH = 350, 48


def measure(seed: int, budget: float) -> dict[str, Any]:
    """Loss by shape and size."""
    share = min(1.0, PRICE * budget)
    if share < LEAST:
        raise NeedsMore(1 / PRICE)
    source = Source.draw(seed)
    columns: dict[str, Any] = {"depth": list(SHAPES), "alpha": [], "error": [], "r_squared": []}
    for depth, widths in SHAPES.items():
        sizes, rest = [], []
        for width in widths:
            model = build(width, depth, seed)
            learn(model, source, max(2, round(share * STEPS)), seed, 0.15 / width**0.75 / depth**0.5, BATCH)
            sizes.append(count_inner(model))
            rest.append(max(1e-6, held_out_loss(model, source) - source.entropy))
        columns[f"parameters, {depth} blocks"], columns[f"loss, {depth} blocks"] = sizes, rest
        try:
            fit = fit_power_law(sizes, rest)
            found = fit.law.alpha, fit.alpha_error, fit.r_squared
        except Mistake:
            found = 0.0, 1.0, 0.0
        for name, value in zip(("alpha", "error", "r_squared"), found, strict=True):
            columns[name].append(value)
    return {**columns, "share": share}


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    shapes = list(zip(numbers["alpha"], numbers["error"], strict=True))
    bound = float(student.ppf(0.975, 2 * (len(SHAPES[1]) - 2)))
    gaps = [abs(a - b) / math.hypot(s, t) / bound for (a, s), (b, t) in combinations(shapes, 2)]
    return {"largest gap over its 5% bound": max(gaps), "least R²": min(numbers["r_squared"])}


def needs(numbers: dict[str, Any]) -> float:
    return 0.0 if numbers["share"] >= 1 else 1 / PRICE


def figure(numbers: dict[str, Any]) -> Figure:
    """A line for each depth."""
    curves = [
        Curve(f"{d} blocks", numbers[f"parameters, {d} blocks"], numbers[f"loss, {d} blocks"]) for d in numbers["depth"]
    ]
    return draw_panels([Panel("above the entropy", "parameters", "nats", curves)])
