"""A recipe for another number of steps: what is told in steps keeps its share of the run.

    T_warm' = T_warm · T'/T        so do periods; a decay by step, e^−λt, gets λ' = λ · T/T'
    1 / (1 − β') = T'/T / (1 − β)  the steps that the weights are averaged over, in a shorter run

A warmup of 100 steps in a run of 78 would never reach the rate that was chosen. Noam's is left as it is: there the
warmup sets the highest rate, too. The run is evaluated and saved at least five times.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from descend.engine.loop import Loop
from descend.kinds.recipe import Recipe
from descend.optim.schedules import Constant, Cosine, Exponential, Linear, Plateau, Step, WarmRestarts, Warmup

TIMES = 5  # evaluations of a short run


def with_steps(recipe: Recipe, steps: int) -> Recipe:
    """The recipe with another number of steps, its schedule and the average of its weights stretched to fit."""
    often, factor = max(1, min(recipe.loop.eval_every, steps // TIMES)), steps / recipe.loop.steps
    loop = replace(recipe.loop, steps=steps, eval_every=often, save_every=min(recipe.loop.save_every, often))
    return replace(recipe, loop=shorten_average(loop, factor), schedule=stretch(recipe.schedule, factor))


def shorten_average(loop: Loop, factor: float) -> Loop:
    """With the β for a run that is shorter by this factor: the average is over the same share of it, and at least over
    one step (β = 0, no average; two, where it is to be compared with the weights). In a longer run it stays."""
    if factor >= 1 or not loop.ema:
        return loop
    return replace(loop, ema=max(0.5 if loop.raw else 0.0, round(1 - (1 - loop.ema) / factor, 6)))


def stretch(schedule: Any, factor: float) -> Any:
    """The schedule of a run that is longer by this factor."""

    def scale(steps: int) -> int:
        return max(1, round(factor * steps)) if steps else 0

    match schedule:
        case Constant() | Cosine() | Linear():
            return replace(schedule, warmup=scale(schedule.warmup))
        case Step():
            return replace(schedule, period=scale(schedule.period))
        case WarmRestarts():
            return replace(schedule, periods=tuple(map(scale, schedule.periods)))
        case Exponential():
            return replace(schedule, decay=schedule.decay / factor)
        case Warmup():
            return replace(schedule, warmup=scale(schedule.warmup), around=stretch(schedule.around, factor))
        case Plateau():
            return replace(schedule, around=stretch(schedule.around, factor))
    return schedule
