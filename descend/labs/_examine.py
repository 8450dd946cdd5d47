"""Run a lab on one seed or on several, and judge.

    verdict over seeds    supported or refuted where every seed says so; open where one is open; else mixed
    mean ± spread         of numbers in the same place: Σ x / n, and √(Σ (x − mean)² / (n − 1))

A measurement runs on one thread, so that its numbers are the same on any number of cores.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from descend.labs import open_lab
from descend.labs._evidence import find_effects, find_needs, judge_seed, weigh


def examine(name: str, seed: int = 0, budget: float | None = None) -> dict[str, Any]:
    """{"lab", "claim", "seed", "budget", "seconds", "numbers", "verdict"}; without a budget, the lab's own."""
    lab = open_lab(name)
    given = float(lab.BUDGET if budget is None else budget)
    began = time.process_time()
    with one_thread():
        numbers = lab.measure(seed, given)
    spent = time.process_time() - began
    found = {"lab": name.replace("_", "-"), "claim": lab.CLAIM, "seed": seed, "budget": given, "seconds": spent}
    if not hasattr(lab, "PREDICTIONS"):
        return {**found, "numbers": numbers, "verdict": lab.verdict(numbers)}
    needed = {"effects": find_effects(lab, numbers), "needs": find_needs(lab, numbers)}
    return {**found, "numbers": numbers, **needed, "verdict": judge_seed(lab, numbers)}


def examine_seeds(name: str, seeds: Iterable[int], budget: float | None = None) -> dict[str, Any]:
    """The lab on each seed, and all of them together."""
    return gather([examine(name, seed, budget) for seed in seeds])


def gather(findings: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """What the same lab found on several seeds, with mean, spread and the verdict over all."""
    numbers = [found["numbers"] for found in findings]
    return {
        **{key: findings[0][key] for key in ("lab", "claim", "budget")},
        "seeds": [found["seed"] for found in findings],
        "seconds": [found["seconds"] for found in findings],
        "numbers": numbers,
        "mean": average(numbers, statistics.mean),
        "spread": average(numbers, measure_spread),
        "verdicts": [found["verdict"] for found in findings],
        "verdict": combine(findings),
    }


def combine(findings: Sequence[dict[str, Any]]) -> str:
    """The verdict over seeds, by the effects where the lab names them."""
    if "effects" not in findings[0]:
        return agree([found["verdict"] for found in findings])
    lab = open_lab(findings[0]["lab"])
    return weigh(lab, [found["effects"] for found in findings], max(found["needs"] for found in findings)).verdict


def measure_spread(values: Sequence[float]) -> float:
    """√(Σ (x − mean)² / (n − 1)); 0 for one value, NaN where one is not finite (too little work to measure it)."""
    if len(values) < 2:
        return 0.0
    return statistics.stdev(values) if all(map(math.isfinite, values)) else math.nan


def agree(verdicts: Sequence[str]) -> str:
    """The verdict over seeds."""
    if len(set(verdicts)) == 1:
        return verdicts[0]
    return "open" if "open" in verdicts else "mixed"


def average(values: Sequence[Any], figure: Callable[[list[float]], float]) -> Any:
    """A figure of the numbers in each place of nested dicts and lists; None where they do not match."""
    first = values[0]
    if all(isinstance(v, int | float) and not isinstance(v, bool) for v in values):
        return figure([float(v) for v in values])
    if isinstance(first, dict) and all(isinstance(v, dict) and v.keys() == first.keys() for v in values):
        return {key: average([v[key] for v in values], figure) for key in first}
    if isinstance(first, list) and all(isinstance(v, list) and len(v) == len(first) for v in values):
        return [average(part, figure) for part in zip(*values, strict=True)]
    return None


@contextmanager
def one_thread() -> Iterator[None]:
    """Inside, torch computes on one thread."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
