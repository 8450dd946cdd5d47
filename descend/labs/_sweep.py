"""A lab on several seeds within one budget, going on where it was interrupted.

    FOLDER/NAME/seed-0-5s.json      what a seed found with 5 seconds; kept until what decides the numbers changes

The budget is for all seeds: each gets its part as work, and the last ones are left out when the first took too long.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from descend.engine.hardware import describe_environment
from descend.errors import Mistake, naming
from descend.files import field, read_json, write_json
from descend.labs import open_lab
from descend.labs._evidence import SEEDS
from descend.labs._examine import examine, gather, judge_finding
from descend.labs._mark import mark_source

FOLDER = Path("runs/labs")
SPENT = 0.7  # of a part that is more than enough
KEPT = ("lab", "seed", "budget", "seconds", "numbers", "needs")


@dataclass(frozen=True)
class Store:
    """Where the findings of each lab and seed are."""

    folder: Path = FOLDER

    def path(self, name: str, seed: int, budget: float) -> Path:
        return self.folder / name.replace("_", "-") / f"seed-{seed}-{budget:g}s.json"

    def read(self, name: str, seed: int, budget: float) -> dict[str, Any] | None:
        """What was found, judged by the lab as it is now; None if it was not measured, or by other code."""
        path = self.path(name, seed, budget)
        if not self.holds(name, seed, budget):
            return None
        found = read_json(path)
        for key, kind in (("seconds", float), ("numbers", dict), ("date", str), ("machine", str)):
            field(found, key, kind, path)
        return {**judge_finding(found), "kept": True}

    def holds(self, name: str, seed: int, budget: float) -> bool:
        """Whether this was measured, by the code that there is now."""
        path = self.path(name, seed, budget)
        return path.is_file() and field(read_json(path), "source", str, path) == mark_source(name)

    def write(self, found: dict[str, Any]) -> dict[str, Any]:
        """Keep a finding; what is kept, with date and machine."""
        path = self.path(found["lab"], found["seed"], found["budget"])
        path.parent.mkdir(parents=True, exist_ok=True)
        here = {"source": mark_source(found["lab"]), "date": time.strftime("%Y-%m-%d"), "machine": name_machine()}
        write_json(path, {**{key: found[key] for key in KEPT if key in found}, **here})
        return {**found, **here}

    def rate(self, name: str) -> float:
        """How many seconds a second of budget took where this lab was measured before; 1 if it was not."""
        known = [read_json(path) for path in sorted((self.folder / name.replace("_", "-")).glob("seed-*.json"))]
        rates = [float(one["seconds"]) / float(one["budget"]) for one in known if one.get("budget")]
        return sum(rates) / len(rates) if rates else 1.0


def name_machine() -> str:
    here = describe_environment()
    return f"{here['cpu']}, 1 of {here['cores']} cores, torch {here['torch']}"


def share(name: str, seeds: Sequence[int], budget: float | None) -> float:
    """What each seed gets as work: what the lab needs, or its part of the budget.

    Of a part that is more than the lab needs, some is held back, since work may take longer than it is paid for.
    """
    needed = float(open_lab(name).BUDGET)
    part = needed if budget is None else budget / len(seeds)
    return part if part <= needed else max(needed, SPENT * part)


def forecast(
    name: str, seeds: Sequence[int], budget: float | None, store: Store, again: bool = False
) -> tuple[int, float]:
    """How many seeds are to be measured, and how many seconds that will take; never more than the budget."""
    each = share(name, seeds, budget)
    left = sum(again or not store.holds(name, seed, each) for seed in seeds)
    cost = left * each * store.rate(name)
    return left, cost if budget is None else min(cost, budget)


def sweep(
    name: str,
    seeds: Sequence[int],
    budget: float | None = None,
    store: Store | None = None,
    again: bool = False,
    tell: Callable[[dict[str, Any]], None] = lambda found: None,
    limit: float | None = None,
) -> dict[str, Any]:
    """The lab on each seed, and all together; `budget` seconds for everything that is not in the store yet.

    `limit` is where it is stopped, by default the budget; without either, nowhere.

    A seed for which nothing is left is missing from the result, and told in "missing".
    """
    if not seeds:
        raise Mistake("--seeds 0: at least 1")
    each = share(name, seeds, budget)
    if store:
        with naming(store.folder):
            (store.folder / name.replace("_", "-")).mkdir(parents=True, exist_ok=True)
    findings: list[dict[str, Any]] = []
    spent, longest, most = 0.0, 0.0, budget if limit is None else limit
    for seed in seeds:
        found = store.read(name, seed, each) if store and not again else None
        left = None if most is None else most - spent
        if found is None and left is not None and findings and left < max(longest, 0.01):
            continue
        if found is None:
            found = examine(name, seed, each, left)
            spent, longest = spent + found["seconds"], max(longest, found["seconds"])
            if store and found["numbers"] is not None:
                found = store.write(found)
        findings.append(found)
        tell(found)
    whole = gather(findings)
    missing = [seed for seed in seeds if seed not in whole["seeds"]]
    return {**whole, "missing": missing, "spent": spent, "asked": budget, "least": SEEDS}
