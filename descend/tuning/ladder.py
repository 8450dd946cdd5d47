"""A ladder of sizes of one recipe, the law of its losses, and what more compute would give.

    sizes      the widths of the model (`model.width`, `.hidden`, `.widths`, …) times f_i, evenly spaced in log,
               1/span to 1: the largest is the recipe itself
    steps      s_i ∝ N_i^½, so that C ∝ N^1.5: larger models read more, in Chinchilla's direction if not in its amount;
               as many as fit into the budget
    compute    FLOPs that torch counts in one step, forward and backward, times the steps
    law        L(C) = L_∞ + (C_c / C)^α along the ladder, the floor fitted where there are four sizes or more
    times k    L(k C) with its interval, and the size and steps one goes to: N k^⅔, s k^⅓

The answers hold for the ladder as it was climbed: with other rates, batches or more epochs the line may lie elsewhere.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from torch.utils.flop_counter import FlopCounterMode

from descend.engine.distributed import World
from descend.engine.training import Training
from descend.errors import Mistake, nearest
from descend.kinds.changes import change
from descend.kinds.length import with_steps
from descend.kinds.recipe import Recipe
from descend.theory.scaling_fit import ScalingFit, bootstrap, find_pitfalls, fit_floor, fit_power_law, interval
from descend.theory.scaling_intervals import by_bootstrap
from descend.tuning.space import list_leaves

WIDTHS = ("width", "widths", "hidden", "stem", "latent")
"""Flags of a model that say how wide it is."""
GROWTH = 0.5
"""Of the steps with the parameters: s ∝ N^½."""
LEAST_STEPS = 20
TIMED = 4
SPARE = 0.9
"""Of the budget that is planned for; the rest is for reading data and evaluating."""


@dataclass(frozen=True)
class Rung:
    """One size of the ladder."""

    factor: float
    values: dict[str, Any]
    parameters: int
    flops: float
    """Of a step."""
    seconds: float
    """Of a step, when it was measured."""
    steps: int = 0

    @property
    def compute(self) -> float:
        """FLOPs of its whole run."""
        return self.flops * self.steps

    def describe(self) -> dict[str, Any]:
        return {**asdict(self), "compute": self.compute}


def find_widths(recipe: Recipe, by: Sequence[str] = ()) -> dict[str, Any]:
    """The flags that a ladder varies, and their values in the recipe."""
    leaves = list_leaves(recipe)
    for name in by:
        if name not in leaves:
            raise Mistake(f"--by {name}: the recipe has no flag --{name}.{nearest(name, leaves)}")
        if not is_width(leaves[name]):
            raise Mistake(f"--by {name}: it is {leaves[name]!r}, not a size; name a whole number such as model.width")
    names = by or [
        n for n, v in leaves.items() if n.split(".")[0] == "model" and n.split(".")[-1] in WIDTHS and is_width(v)
    ]
    if not names:
        raise Mistake("the model has no width to vary; name the flags that make it larger: --by model.NAME")
    return {name: leaves[name] for name in names}


def is_width(value: Any) -> bool:
    whole = lambda v: isinstance(v, int) and not isinstance(v, bool)
    return whole(value) or (isinstance(value, tuple) and bool(value) and all(map(whole, value)))


def scale_widths(recipe: Recipe, widths: dict[str, Any], factor: float) -> dict[str, Any]:
    """Every width times the factor, rounded to what the heads and groups divide, and at least that."""
    leaves = list_leaves(recipe)
    unit = math.lcm(*(leaves[name] or 1 for name in ("model.heads", "model.groups") if is_width(leaves.get(name))), 1)

    def scale(value: int) -> int:
        each = unit if value % unit == 0 else 1
        return max(each, each * round(factor * value / each))

    return {name: tuple(map(scale, v)) if isinstance(v, tuple) else scale(v) for name, v in widths.items()}


def plan_factors(sizes: int, span: float) -> list[float]:
    """Evenly spaced in logarithm, the smallest first."""
    if sizes < 3:
        raise Mistake(f"--sizes {sizes}: a line through fewer than 3 points tells nothing; 5 or more tell of a floor")
    if not span > 1:
        raise Mistake(f"--span {span:g}: how many times wider the largest is than the smallest, above 1")
    return [span ** (i / (sizes - 1) - 1) for i in range(sizes)]


def resize(recipe: Recipe, values: dict[str, Any], steps: int = 0) -> Recipe:
    """The recipe at another size and, if given, another length; its schedule is stretched along."""
    found = change(recipe, values)
    return with_steps(found, steps) if steps else found


def weigh(recipe: Recipe, values: dict[str, Any], factor: float) -> Rung:
    """Parameters, FLOPs and seconds of a step, from a few real ones that are thrown away."""
    sized = resize(recipe, values)
    parts = sized.build()
    training = Training(parts, sized.loop, sized.schedule, World())
    with FlopCounterMode(display=False) as counter:
        training.advance()
    times = []
    for _ in range(TIMED):
        began = time.perf_counter()
        training.advance()
        times.append(time.perf_counter() - began)
    count = sum(p.numel() for p in parts.model.parameters())
    flops = float(counter.get_total_flops())
    if not flops > 0:
        raise Mistake("a step of this recipe holds no matrix products to count; scaling laws are about those")
    return Rung(factor, values, count, flops, sorted(times)[len(times) // 2])


def plan_ladder(recipe: Recipe, sizes: int, span: float, budget: float, by: Sequence[str] = ()) -> list[Rung]:
    """The rungs with their steps: the largest takes the recipe's steps, or what the budget leaves to it."""
    widths = find_widths(recipe, by)
    all_values = [scale_widths(recipe, widths, factor) for factor in plan_factors(sizes, span)]
    if len({str(values) for values in all_values}) < sizes:
        names = ", ".join(f"--{name} {value}" for name, value in widths.items())
        raise Mistake(f"{sizes} sizes over a span of {span:g} do not differ ({names}); fewer --sizes, or a wider model")
    rungs = [weigh(recipe, v, f) for v, f in zip(all_values, plan_factors(sizes, span), strict=True)]
    shares = [(rung.parameters / rungs[-1].parameters) ** GROWTH for rung in rungs]
    most = recipe.loop.steps
    if budget:
        most = min(most, int(SPARE * budget / sum(s * r.seconds for s, r in zip(shares, rungs, strict=True))))
    if most * shares[0] < LEAST_STEPS:
        enough = math.ceil(LEAST_STEPS / shares[0])
        time_needed = enough * sum(s * r.seconds for s, r in zip(shares, rungs, strict=True)) / SPARE
        cure = f"--budget {math.ceil(time_needed)}s and --steps {enough}" if budget else f"--steps {enough}"
        raise Mistake(f"the smallest model would take {int(most * shares[0])} steps, too few; give at least {cure}")
    return [Rung(**{**asdict(r), "steps": round(most * share)}) for r, share in zip(rungs, shares, strict=True)]


def fit_ladder(compute: Sequence[float], losses: Sequence[float]) -> ScalingFit:
    """With a floor where there are enough sizes to tell it, else without."""
    return (fit_floor if len(compute) >= 4 else fit_power_law)(compute, losses)


def answer(rungs: Sequence[Rung], losses: Sequence[float], times: float = 10.0, draws: int = 300) -> dict[str, Any]:
    """The law of the ladder, what `times` the compute of its largest run would give, and what makes that doubtful."""
    if not times > 0:
        raise Mistake(f"--times {times:g}: it must be above 0")
    compute = [rung.compute for rung in rungs]
    last, at = rungs[-1], times * compute[-1]
    pitfalls = find_pitfalls(compute, losses, at)
    found: dict[str, Any] = {"times": times, "warnings": pitfalls, "law": None, "prediction": None}
    try:
        fit = fit_ladder(compute, losses)
        laws = bootstrap(fit, fit_ladder, draws)
    except Mistake as mistake:
        return {**found, "warnings": [*pitfalls, str(mistake)]}
    growth = times ** (1 / (1 + GROWTH))
    low, high = by_bootstrap(laws, at)
    law = {
        "floor": fit.law.floor,
        "floor_interval": interval([one.floor for one in laws]),
        "alpha": fit.law.alpha,
        "alpha_interval": interval([one.alpha for one in laws]),
        "scale": fit.law.scale,
        "r_squared": fit.r_squared,
    }
    prediction = {
        "loss": fit.law(at),
        "interval": (low, high),
        "compute": at,
        "parameters": round(last.parameters * growth),
        "width_factor": math.sqrt(growth),
        "steps": round(last.steps * growth**GROWTH),
    }
    curve = [compute[0] * (at / compute[0]) ** (i / 40) for i in range(41)]
    bands = [by_bootstrap(laws, c) for c in curve]
    drawn = {
        "compute": curve,
        "loss": [fit.law(c) for c in curve],
        "low": [low for low, _ in bands],
        "high": [high for _, high in bands],
    }
    return {**found, "law": law, "prediction": prediction, "curve": drawn}
