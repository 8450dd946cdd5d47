"""lab: test claims of the books by measurement, and say whether they are supported, refuted or open."""

from __future__ import annotations

import base64
import io
import json as json_format
import math
import sys
import textwrap
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from descend import labs
from descend.errors import Mistake
from descend.labs._sweep import FOLDER, Store, forecast, name_machine, sweep
from descend.verbs.evidence import format_lab, name_columns, place
from descend.verbs.flags import read_seconds

DRAWN = (".png", ".svg", ".html")
"""What a figure, or a page with one, is written as."""


def lab(
    name: str, seed: int = 0, budget: float | None = None, seeds: int = 3, keep: str | Path | None = None
) -> dict[str, Any]:
    """Test a claim of the books by measurement.

    Args:
        name: the lab.
        seed: the first seed; everything random follows from it.
        budget: seconds of one core for all seeds together, never exceeded; None: what the lab needs.
        seeds: how many seeds to measure, from `seed` on; a verdict needs 3.
        keep: a folder for what each seed found: the next call measures only what is missing there.

    Returns:
        {"lab", "claim", "printed", "entries", "scope", "retuned", "seeds", "budget", "seconds", "numbers", "mean",
        "spread", "predictions", "controls", "printed_predictions", "needs", "verdicts", "verdict", ..}: numbers,
        seconds and verdicts of each seed, each prediction with its effect, interval and verdict, and the verdict.
    """
    store = Store(Path(keep)) if keep is not None else None
    return examine_lab(name, range(seed, seed + seeds), budget, store)


def examine_lab(
    name: str,
    seeds: Sequence[int],
    budget: float | None = None,
    store: Store | None = None,
    again: bool = False,
    limit: float | None = None,
    tell: Callable[[dict[str, Any]], None] = lambda found: None,
) -> dict[str, Any]:
    """What the sweep finds, and where the claim stands in the books; `tell` hears of every seed."""
    kept: list[dict[str, Any]] = []

    def hear(found: dict[str, Any]) -> None:
        kept.append(found)
        tell(found)

    found = sweep(name, seeds, budget, store, again, hear, limit)
    dates = sorted({f"{one['date']}, {one['machine']}" for one in kept if "date" in one})
    made = "; ".join(dates) or f"{time.strftime('%Y-%m-%d')}, {name_machine()}"
    return {**found, "where": place(found["entries"]), "kept": sum("kept" in one for one in kept), "made": made}


def command(
    name: str = "",
    /,
    *,
    all: bool = False,
    seed: int = 0,
    seeds: int = 3,
    budget: str = "",
    workers: int = 1,
    keep: Path = FOLDER,
    again: bool = False,
    out: Path | None = None,
    json: bool = False,
) -> None:
    """Test a claim of the books: the claim, what was measured on each seed, the evidence, and the verdict.

    Without a name, list the labs. With --all, measure every lab and write the ledger of all claims to --out. What a
    seed found is kept, so that an interrupted command goes on where it was when it is given again.

    Args:
        name: the lab.
        all: every lab.
        seed: the first seed; everything random follows from it.
        seeds: how many seeds to measure, from that one on; a verdict needs 3.
        budget: time of one core for everything together, never exceeded: 10s, 2m; by default what each lab needs.
        workers: labs that are measured at the same time, with --all.
        keep: where the findings of each seed are kept.
        again: measure also what is kept there.
        out: write the figure (.png, .svg) or a page with everything (.html).
        json: print JSON instead of text.

    Examples:
        descend lab
        descend lab attention-scale
        descend lab attention-scale --seeds 5 --budget 2m
        descend lab attention-scale --out scale.html
        descend lab --all --workers 2 --out labs.html
    """
    if out is not None:
        check_out(out, (".html",) if all else DRAWN)
    if seeds < 1:
        raise Mistake(f"--seeds {seeds}: at least 1")
    if workers < 1:
        raise Mistake(f"--workers {workers}: at least 1")
    if all and name:
        raise Mistake(f"--all is every lab: leave out {name!r}, or --all")
    given = read_seconds(budget) if budget else None
    wanted = range(seed, seed + seeds)
    if all:
        tell_all(wanted, given, Store(keep), again, workers, out, json)
    elif not name:
        claims = [{"lab": known, "claim": labs.claim(known)} for known in labs.names()]
        print(json_format.dumps(claims, indent=1) if json else "\n\n".join(map(format_claim, claims)))
    else:
        tell_one(name, wanted, given, Store(keep), again, out, json)


def tell_one(
    name: str, seeds: Sequence[int], budget: float | None, store: Store, again: bool, out: Path | None, json: bool
) -> None:
    """Measure one lab and print it."""
    left, cost = forecast(name, seeds, budget, store, again)
    limit = "" if budget is None else f", of a budget of {budget:g} s"
    print(f"forecast: {left} of {len(seeds)} seeds to measure, about {cost:.3g} s{limit}", file=sys.stderr, flush=True)
    found = examine_lab(name, seeds, budget, store, again, tell=tell_seed)
    print(json_format.dumps(drop_nan(found), indent=1) if json else format_lab(found))
    if out is None:
        return
    save(found, out)
    if not json:
        print(f"\nwritten: {out}")


def tell_seed(found: dict[str, Any]) -> None:
    """A line of progress."""
    cost = "measured before" if "kept" in found else f"{found['seconds']:.1f} s"
    print(f"seed {found['seed']}: {found['verdict']}, {cost}", file=sys.stderr, flush=True)


def tell_all(
    seeds: Sequence[int],
    budget: float | None,
    store: Store,
    again: bool,
    workers: int,
    out: Path | None,
    json: bool,
) -> None:
    """Measure every lab, at its own budget each, until the budget for all is spent; print a line for each."""
    costs = {name: forecast(name, seeds, None, store, again) for name in labs.names()}
    chosen, total = [], 0.0
    for name, (_, cost) in costs.items():
        if budget is None or total + cost <= budget:
            chosen.append(name)
            total += cost
    said = f"forecast: {sum(costs[name][0] for name in chosen)} measurements of {len(chosen)} labs, about"
    print(f"{said} {total / 60:.0f} min of one core, on {workers}", file=sys.stderr, flush=True)
    began = time.monotonic()
    limits = {name: None if budget is None else budget * costs[name][1] / max(total, 1e-9) for name in chosen}
    if workers > 1:
        with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
            same = ([one] * len(chosen) for one in (seeds, store, again))
            for name in pool.map(measure_one, chosen, *same, limits.values()):
                print(f"{name} is measured", file=sys.stderr, flush=True)
    found = []
    for name in chosen:
        one = examine_lab(name, seeds, None, store, again and workers == 1, limits[name] if workers == 1 else 0.0)
        found.append(one)
        if not json:
            print(f"{name}: {one['verdict']} ({sum(one['seconds']):.1f} s)", flush=True)
    if json:
        print(json_format.dumps(drop_nan(found), indent=1))
    left = [name for name in costs if name not in chosen]
    if left:
        print(f"not measured, the budget is too small: {', '.join(left)}", file=sys.stderr)
    took = f"took {(time.monotonic() - began) / 60:.1f} min"
    print(f"{took}, forecast {total / 60 / workers:.1f} min", file=sys.stderr)
    if out is not None:
        write_ledger(found, out, f"{name_machine()}; {took} with {workers} workers")


def measure_one(name: str, seeds: Sequence[int], store: Store, again: bool, limit: float | None) -> str:
    """Measure a lab in a process of its own; what it finds is in the store."""
    sweep(name, seeds, None, store, again, limit=limit)
    return name


def write_ledger(found: list[dict[str, Any]], out: Path, made: str) -> None:
    """The page of all labs, with a small figure of each."""
    from descend.report.ledger import make_ledger
    from descend.web.page import write_page

    drawings = {}
    for one in found:
        numbers = next((numbers for numbers in one["numbers"] if numbers is not None), None)
        if numbers is not None:
            file = io.BytesIO()
            labs.open_lab(one["lab"]).figure(numbers).savefig(file, format="png", dpi=64)
            drawings[one["lab"]] = f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"
    write_page(out, make_ledger(found, drawings, made))
    print(f"written: {out}", file=sys.stderr)


def drop_nan(value: Any) -> Any:
    """The same with None in place of NaN and infinity, which JSON lacks."""
    if isinstance(value, dict):
        return {key: drop_nan(part) for key, part in value.items()}
    if isinstance(value, list):
        return [drop_nan(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def format_claim(lab: dict[str, str]) -> str:
    return lab["lab"] + "\n" + textwrap.fill(lab["claim"], 78, initial_indent="  ", subsequent_indent="  ")


def check_out(out: Path, kinds: tuple[str, ...] = DRAWN) -> None:
    """Refuse a place that cannot be written to before the work is done, not after."""
    if out.suffix not in kinds:
        raise Mistake(f"--out {out}: the name must end in {' or '.join(', '.join(kinds).rsplit(', ', 1))}")
    if not out.parent.is_dir():
        raise Mistake(f"--out {out}: there is no folder {out.parent}")


def save(found: dict[str, Any], out: Path) -> None:
    """The figure of the first seed alone, or a page around it; a page without a figure where nothing was measured."""
    numbers = next((numbers for numbers in found["numbers"] if numbers is not None), None)
    if numbers is None and out.suffix != ".html":
        raise Mistake(f"--out {out}: nothing was measured that could be drawn; give a larger --budget")
    if out.suffix != ".html":
        labs.open_lab(found["lab"]).figure(numbers).savefig(out, dpi=160)
        return
    from descend.report.lab import make_lab_page
    from descend.web.page import write_page

    file = io.StringIO()
    if numbers is not None:
        labs.open_lab(found["lab"]).figure(numbers).savefig(file, format="svg")
    seeds = ", ".join(map(str, found["seeds"]))
    made = f"seeds {seeds}, budget {found['budget']:.4g} s a seed, {found['made']}; numbers and figure: the first seed"
    write_page(out, make_lab_page({**found, "made": made}, file.getvalue(), *name_columns(numbers or {})))
