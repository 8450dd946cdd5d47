"""How a run went, from the lines of its metrics.jsonl: the loss curves, the gradient norms, the fault that ended it."""

from __future__ import annotations

import math
from typing import Any

from descend.diagnosis.signs import Curve, Signs, flatten

LOOP = frozenset({"step", "time", "loss", "lr", "rate", "grad_norm"})


def read_course(recipe: dict[str, Any], lines: list[dict[str, Any]]) -> Signs:
    """The signs that need nothing but the files. Curves only where one loss is trained and validated: a game between
    players, or a reward, need not fall. Damaged lines are left out."""
    lines = keep_whole(lines)
    scores = [{"step": line["step"], **line["valid"]} for line in lines if isinstance(line.get("valid"), dict)]
    faults = [line for line in lines if line.get("event") == "failed"]
    tree = recipe.get("values")
    values = flatten(tree if isinstance(tree, dict) else {})
    # A run that failed before its first evaluation has a training curve only.
    falls = not scores or any("loss" in score for score in scores)
    done = max((line["step"] for line in lines), default=0)
    ends = [line for line in lines if line.get("event") not in (None, "warning", "resumed", "started", "test")]
    last = ends[-1] if ends and ends[-1]["step"] >= done else {}
    players = {f"loss_{name}": name for name in list_players(recipe)} if not take_series(lines, "loss") else {}
    return Signs(
        name=str(recipe.get("name", "")),
        values=values,
        steps=steps if isinstance(steps := values.get("steps"), int) else 0,
        train=take_series(lines, "loss") if falls else (),
        valid=take_series(scores, "loss"),
        norms=take_series(lines, "grad_norm"),
        players={name: take_series(lines, key) for key, name in players.items()},
        measured={name: take_series(lines, name) for name in list_measured(lines)},
        judged={name: take_series(scores, name) for name in sorted(set().union(*scores) - LOOP)},
        spikes=tuple((line["step"], str(line.get("said", ""))) for line in lines if line.get("finding") == "spike"),
        done=done,
        ended=str(last.get("event", "")),
        fault=str(faults[-1].get("fault", "")) if faults else "",
        fault_step=int(faults[-1]["step"]) + 1 if faults else 0,
    )


def list_players(recipe: dict[str, Any]) -> list[str]:
    """The players that have an optimizer each: {"optim": {"d": {..}, "g": {..}}}."""
    values = recipe.get("values")
    rules = values.get("optim") if isinstance(values, dict) else None
    return [name for name, rule in rules.items() if isinstance(rule, dict)] if isinstance(rules, dict) else []


def list_measured(lines: list[dict[str, Any]]) -> list[str]:
    """What training lines hold beside losses and the numbers of the loop."""
    named = {
        name for line in lines if "event" not in line and "valid" not in line and "test" not in line for name in line
    }
    return sorted(name for name in named - LOOP if not name.startswith("loss_"))


def keep_whole(lines: list[Any]) -> list[dict[str, Any]]:
    """The lines that say of which step they are."""
    return [line for line in lines if isinstance(line, dict) and isinstance(line.get("step"), int)]


def take_series(lines: list[dict[str, Any]], name: str) -> Curve:
    """The finite values of one metric."""
    found = [(line["step"], line[name]) for line in lines if isinstance(line.get(name), int | float)]
    return tuple((step, float(value)) for step, value in found if math.isfinite(value))


def find_highest_rate(lines: list[dict[str, Any]]) -> float | None:
    """The largest learning rate that the schedule reached."""
    return max((rate for _, rate in take_series(keep_whole(lines), "lr")), default=None)
