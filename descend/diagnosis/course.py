"""How a run went, from the lines of its metrics.jsonl: the loss curves, the gradient norms, the fault that ended it."""

from __future__ import annotations

import math
from typing import Any

from descend.diagnosis.signs import Curve, Signs, flat


def course(recipe: dict[str, Any], lines: list[dict[str, Any]]) -> Signs:
    """The signs that need nothing but the files. Curves only where one loss is trained and validated: a game between
    players, or a reward, need not fall. Damaged lines are left out."""
    lines = whole(lines)
    scores = [{"step": line["step"], **line["valid"]} for line in lines if isinstance(line.get("valid"), dict)]
    faults = [line for line in lines if line.get("event") == "failed"]
    values = flat(recipe.get("values") or {})
    # A run that failed before its first evaluation has a training curve only.
    falls = not scores or any("loss" in score for score in scores)
    return Signs(
        name=str(recipe.get("name", "")),
        values=values,
        steps=int(values.get("steps") or 0),
        train=series(lines, "loss") if falls else (),
        valid=series(scores, "loss"),
        norms=series(lines, "grad_norm"),
        fault=str(faults[-1].get("fault", "")) if faults else "",
        fault_step=int(faults[-1]["step"]) + 1 if faults else 0,
    )


def whole(lines: list[Any]) -> list[dict[str, Any]]:
    """The lines that say of which step they are."""
    return [line for line in lines if isinstance(line, dict) and isinstance(line.get("step"), int)]


def series(lines: list[dict[str, Any]], name: str) -> Curve:
    """The finite values of one metric."""
    found = [(line["step"], line[name]) for line in lines if isinstance(line.get(name), int | float)]
    return tuple((step, float(value)) for step, value in found if math.isfinite(value))


def highest_rate(lines: list[dict[str, Any]]) -> float | None:
    """The largest learning rate that the schedule reached."""
    return max((rate for _, rate in series(whole(lines), "lr")), default=None)
