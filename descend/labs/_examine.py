"""Run a lab on one seed or on several, and judge.

    verdict               of the effects of all seeds against the predictions of the lab (`_evidence.py`)
    mean ± spread         of numbers in the same place: Σ x / n, and √(Σ (x − mean)² / (n − 1))

A measurement runs on one thread, so that its numbers are the same on any number of cores. One that has a limit is
stopped when it has used so many seconds of the processor, and says how many it would have needed.
"""

from __future__ import annotations

import math
import signal
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from types import FrameType
from typing import Any

import torch

from descend.errors import Mistake
from descend.labs import open_lab
from descend.labs._evidence import Judged, NeedsMore, find_effects, find_needs, list_predictions, weigh

SAFE = 0.9  # share of a limit after which a measurement is stopped: one operation may take a while to end
LAZY = {
    "descend.engine.minimise": "torch._dynamo",
    "descend.optim.rules": "torch._dynamo",
    "descend.data.images.digits": "sklearn.datasets",
}
LATER = 0.005  # seconds until it is tried again


def examine(name: str, seed: int = 0, budget: float | None = None, limit: float | None = None) -> dict[str, Any]:
    """{"lab", "seed", "budget", "seconds", "numbers", "effects", "needs", "verdict"}; by default, at the lab's budget.

    A measurement that is stopped by the limit, or stops itself, has no numbers and no effects. Neither has one that
    breaks down with less than the lab's budget: nobody is left of a class, no point is left for a fit. `why` says so.
    """
    lab = open_lab(name)
    given = float(lab.BUDGET if budget is None else budget)
    load_libraries()
    stopped, numbers, why = 0.0, None, ""
    began = time.process_time()
    try:
        with one_thread(), deadline(limit, max(lab.BUDGET, 1.5 * given)):
            numbers = lab.measure(seed, given)
    except NeedsMore as more:
        stopped, why = more.seconds, str(more)
    except (ArithmeticError, RuntimeError, ValueError, Mistake) as error:
        if given >= lab.BUDGET:
            raise
        stopped, why = float(lab.BUDGET), f"with so little work it is not defined: {error}"
    spent = time.process_time() - began
    found = {"lab": name.replace("_", "-"), "seed": seed, "budget": given, "seconds": spent, "numbers": numbers}
    return judge_finding({**found, "needs": stopped, "why": why})


def judge_finding(found: dict[str, Any]) -> dict[str, Any]:
    """What was found on a seed, with its effects and what they say by themselves, by the lab as it is now."""
    lab, numbers = open_lab(found["lab"]), found["numbers"]
    if numbers is None:
        nothing = {prediction.effect: None for prediction in list_predictions(lab)}
        return {**found, "effects": nothing, "verdict": "open"}
    effects, needs = find_effects(lab, numbers), find_needs(lab, numbers)
    said = weigh(lab, [effects], needs, least=1).verdict
    return {**found, "effects": effects, "needs": needs, "verdict": said}


def examine_seeds(name: str, seeds: Iterable[int], budget: float | None = None) -> dict[str, Any]:
    """The lab on each seed, each with this budget, and all of them together."""
    return gather([examine(name, seed, budget) for seed in seeds])


def gather(findings: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """What the same lab found on several seeds: the claim, each prediction judged, mean, spread and the verdict."""
    lab = open_lab(findings[0]["lab"])
    numbers = [found["numbers"] for found in findings]
    measured = [one for one in numbers if one is not None]
    return {
        **describe(lab),
        **{key: findings[0][key] for key in ("lab", "budget")},
        "seeds": [found["seed"] for found in findings],
        "seconds": [found["seconds"] for found in findings],
        "numbers": numbers,
        "mean": average(measured, statistics.mean) if measured else {},
        "spread": average(measured, measure_spread) if measured else {},
        "verdicts": [found["verdict"] for found in findings],
        "why": [found.get("why", "") for found in findings],
        **combine(lab, findings),
    }


def describe(lab: Any) -> dict[str, Any]:
    """What a lab says of itself: the claim as tested and as printed, where it stands, its scope, what was retuned."""
    said = {key: getattr(lab, key.upper(), "") for key in ("claim", "printed", "scope", "retuned")}
    return {**said, "entries": list(getattr(lab, "ENTRIES", ()))}


def combine(lab: Any, findings: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The verdict over seeds, and each prediction with what was measured."""
    needs = max(found["needs"] for found in findings)
    found = weigh(lab, [one["effects"] for one in findings], needs)
    return {
        "predictions": [tell(one) for one in found.judged],
        "controls": [tell(one) for one in found.controls],
        "printed_predictions": [tell(one) for one in found.printed],
        "needs": needs,
        "verdict": found.verdict,
        "printed_verdict": found.printed_verdict,
    }


def tell(judged: Judged) -> dict[str, Any]:
    """A judged prediction, ready for JSON."""
    prediction = judged.prediction
    return {
        "effect": prediction.effect,
        "predicted": prediction.spell(),
        "bounds": list(prediction.bounds()),
        "text": prediction.note,
        "values": [value if math.isfinite(value) else None for value in judged.values],
        "mean": judged.mean if math.isfinite(judged.mean) else None,
        "interval": [end if math.isfinite(end) and len(judged.values) > 1 else None for end in judged.interval],
        "held": judged.count(),
        "verdict": judged.verdict,
    }


def measure_spread(values: Sequence[float]) -> float:
    """√(Σ (x − mean)² / (n − 1)); 0 for one value, NaN where one is not finite (too little work to measure it)."""
    if len(values) < 2:
        return 0.0
    return statistics.stdev(values) if all(map(math.isfinite, values)) else math.nan


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
    """Inside, torch computes on one thread; whatever was interrupted there, gradients are as they were afterwards."""
    threads, gradients, dtype = torch.get_num_threads(), torch.is_grad_enabled(), torch.get_default_dtype()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
        torch.set_grad_enabled(gradients)
        torch.set_default_dtype(dtype)


def load_libraries() -> None:
    """Load what a first batch or step would load, so that no measurement pays for it."""
    for user, library in LAZY.items():
        if user in sys.modules:
            import_module(library)


def is_importing(frame: FrameType | None) -> bool:
    """Whether a module is being loaded there."""
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


@contextmanager
def deadline(seconds: float | None, needed: float) -> Iterator[None]:
    """Inside, NeedsMore(needed) is raised once the process has used so many seconds of the processor more.

    It takes a signal, which only the main thread receives; elsewhere, and without seconds, nothing is limited.
    """
    if seconds is None or threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        yield
        return

    def stop(_: int, frame: FrameType | None) -> None:
        if is_importing(frame):  # half a module would stay behind
            signal.setitimer(signal.ITIMER_PROF, LATER)
        else:
            raise NeedsMore(needed)

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, max(SAFE * seconds, 1e-3))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
