"""What to change where a run would take long, with the time that each change would leave.

steps       the time is that of the steps, T · (t_step + t_eval / every)
width       most products are (b, d) × (d, d): half the width takes about a quarter
image size  a layer's work is one of pixels: half the side takes about a quarter
"""

from __future__ import annotations

from typing import Any

from descend.kinds.recipe import Recipe
from descend.verbs.measure import Measured

LONG = 3600.0  # seconds that a first run may take; also what is advised
SMALLEST = {"model.width": 16, "data.size": 16}


def advise(recipe: Recipe, measured: Measured) -> list[str]:
    """Flags that make a long run shorter, each with its figure; nothing for a short one."""
    total = measured.seconds()
    if total <= LONG:
        return []
    steps = measured.steps_within(LONG)
    found = [f"--budget 1h: as many steps as fit, {steps:,} of {measured.loop.steps:,}, and a schedule of that length"]
    found.append(f"--steps {steps}: {format_duration(measured.seconds(steps))}")
    for flag, smallest in SMALLEST.items():
        part, name = flag.split(".")
        value = read_number({"model": recipe.model, "data": recipe.data}[part], name)
        if value >= 2 * smallest:
            found.append(f"--{flag} {value // 2} instead of {value}: about {format_duration(total / 4)}")
    return found


def read_number(part: Any, name: str) -> int:
    """A whole number of a part of a recipe; 0 where it has none."""
    value = vars(part).get(name, 0) if part is not None else 0
    return value if isinstance(value, int) else 0


def format_duration(value: float) -> str:
    """Seconds as a person would say them."""
    if value < 120:
        return f"{value:.0f} s"
    return f"{value / 60:.0f} min" if value < 7200 else f"{value / 3600:.1f} h"
