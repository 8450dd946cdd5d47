"""Runs side by side: the values that differ, and the first step at which their curves part. Needs no torch."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from descend.report.history import History, as_number

ALONE = ("about", "parameters", "takes", "class")  # what is said of a recipe, not chosen
MISSING = "—"


class Parting(NamedTuple):
    """Where a metric of two runs is first not the same."""

    name: str
    step: int
    first: float
    second: float


def list_flags(history: History) -> dict[str, Any]:
    """The values of a run by the names of their flags: {"optim.lr": 0.001, "steps": 500}."""
    values = history.recipe.get("values")
    found = flatten_values(values if isinstance(values, dict) else {})
    return {name.removeprefix("loop."): value for name, value in found.items() if name not in ALONE}


def flatten_values(tree: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    """{"optim": {"class": "Adam", "lr": 0.1}} -> {"optim": "Adam", "optim.lr": 0.1}"""
    found: dict[str, Any] = {}
    for name, value in tree.items():
        if isinstance(value, dict):
            found |= flatten_values(value, f"{above}{name}.")
        elif name == "class":
            found[above.rstrip(".") or "class"] = value
        else:
            found[f"{above}{name}"] = value
    return found


def compare_flags(histories: Sequence[History]) -> dict[str, list[Any]]:
    """The flags that are not the same in all runs, and what each run has."""
    every = [{"recipe": one.name} | list_flags(one) for one in histories]
    names = dict.fromkeys(name for flags in every for name in flags)
    rows = {name: [flags.get(name, MISSING) for flags in every] for name in names}
    return {name: row for name, row in rows.items() if any(value != row[0] for value in row[1:])}


def gather_metrics(history: History) -> dict[str, dict[int, float]]:
    """What was measured: {"loss": {step: value}, "valid.accuracy": ..}, without the times, which are the machine's."""
    found: dict[str, dict[int, float]] = {}
    for line in history.train:
        for name, value in line.items():
            if name not in ("step", "time", "rate") and isinstance(value, int | float):
                found.setdefault(name, {})[line["step"]] = float(value)
    for line in history.valid:
        for name, value in line["valid"].items():
            found.setdefault(f"valid.{name}", {})[line["step"]] = as_number(value)
    return found


def find_partings(first: History, second: History) -> list[Parting]:
    """For every metric that both runs have and that parts: the first step at which it does, the earliest first."""
    one, other = gather_metrics(first), gather_metrics(second)
    found = []
    for name in one.keys() & other.keys():
        shared = sorted(one[name].keys() & other[name].keys())
        for step in shared:
            a, b = one[name][step], other[name][step]
            if a != b and not (math.isnan(a) and math.isnan(b)):
                found.append(Parting(name, step, a, b))
                break
    return sorted(found, key=lambda parting: (parting.step, parting.name))


def count_shared(first: History, second: History) -> int:
    """Steps at which both runs have measured something."""
    steps = [{line["step"] for line in (*one.train, *one.valid)} for one in (first, second)]
    return len(steps[0] & steps[1])
