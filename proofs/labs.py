"""python -m proofs.labs [names]: run every lab at its own budget on seeds 0, 1 and 2, and record (LABS.json, LABS.md).

What was recorded for a seed is kept as long as neither the lab's budget nor what decides its numbers has changed since
(`mark_source`): an interrupted recording goes on where it stopped, and a second one measures only what is new, with
`--again` everything. What is kept is judged anew by the lab's predictions as they are now; `--judge` does only that.
labs.html is the same as a page.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import math
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from descend import labs
from descend.labs._examine import describe, examine, gather, judge_finding
from descend.labs._mark import mark_source
from descend.labs._sweep import Store, name_machine
from descend.report.ledger import make_ledger
from descend.verbs.evidence import place
from descend.web.page import write_page

HERE = Path(__file__).parent
SEEDS = (0, 1, 2)
LONGEST = 64  # numbers in a row that are kept; longer ones are curves, images and maps for the figure


def shorten(value: Any) -> Any:
    """Ten significant digits, without long rows; NaN and infinity, which JSON lacks, as None."""
    if isinstance(value, bool) or not isinstance(value, float | dict | list):
        return value
    if isinstance(value, float):
        return float(f"{value:.10g}") if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: shorten(part) for key, part in value.items() if not is_long(part)}
    return [shorten(part) for part in value if not is_long(part)]


def is_long(value: Any) -> bool:
    return isinstance(value, list) and len(value) > LONGEST


def list_seeds(name: str) -> tuple[int, ...]:
    """Those that a lab asks for (SEEDS), or 0, 1 and 2."""
    return getattr(labs.open_lab(name), "SEEDS", SEEDS)


def stands(entry: dict[str, Any], name: str) -> bool:
    """Whether what is recorded is of this lab as it is now."""
    return bool(entry) and entry["source"] == mark_source(name) and entry["budget"] == labs.open_lab(name).BUDGET


def record_lab(name: str, entry: dict[str, Any]) -> dict[str, Any]:
    """The entry with one more seed measured, and the verdict over all that there are."""
    old = entry if stands(entry, name) else {"findings": []}
    seed = next(seed for seed in list_seeds(name) if seed not in [found["seed"] for found in old["findings"]])
    found = examine(name, seed)
    Store().write(found)
    kept = shorten({key: found[key] for key in ("seed", "seconds", "numbers", "verdict", "effects") if key in found})
    here = {"source": mark_source(name), "date": time.strftime("%Y-%m-%d"), "machine": name_machine()}
    return {**judge_entry(name, {**here, "budget": found["budget"], "findings": [*old["findings"], kept]}), **here}


def judge_entry(name: str, entry: dict[str, Any]) -> dict[str, Any]:
    """The entry with the verdicts of the lab as it is now, on the numbers that are recorded."""
    findings = [judge_recorded(name, entry["budget"], found) for found in entry["findings"]]
    whole = gather([{**found, "lab": name, "budget": entry["budget"]} for found in findings])
    told = ("claim", "verdict", "printed_verdict", "predictions", "controls", "printed_predictions", "mean", "spread")
    said = {key: shorten(whole[key]) for key in told if whole.get(key)}
    kept = [{key: part for key, part in found.items() if key != "needs"} for found in findings]
    verdict = whole["verdict"] if len(findings) == len(list_seeds(name)) else "incomplete"
    about: dict[str, Any] = {key: entry[key] for key in ("budget", "source", "date", "machine") if key in entry}
    return {**about, **said, "findings": kept, "verdict": verdict}


def judge_recorded(name: str, budget: float, found: dict[str, Any]) -> dict[str, Any]:
    """A recorded finding by the effects as they are now; by those recorded where they need what was not kept."""
    bare = {key: found[key] for key in ("seed", "seconds", "numbers")}
    try:
        judged = judge_finding({**bare, "lab": name, "budget": budget, "needs": 0.0})
    except (KeyError, IndexError, TypeError, ValueError):
        if "effects" not in found:
            raise
        judged = {**found, "needs": 0.0}
    kept = ("seed", "seconds", "numbers", "verdict", "effects", "needs")
    shown: dict[str, Any] = shorten({key: judged[key] for key in kept if key in judged})
    return shown


def read(folder: Path) -> dict[str, Any]:
    path = folder / "LABS.json"
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return found


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Inside, no other recording writes to the folder."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def update(folder: Path, changed: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Enter what is new, beside what others have recorded meanwhile; labs that are no more are dropped."""
    with alone(folder):
        record = {name: entry for name, entry in {**read(folder), **changed}.items() if name in labs.names()}
        write(record, folder)
    return record


def write(record: dict[str, Any], folder: Path) -> None:
    """The record, and a table to read."""
    labs_found = [f"{json.dumps(name)}: {json.dumps(entry, sort_keys=True)}" for name, entry in sorted(record.items())]
    (folder / "LABS.json").write_text("{\n" + ",\n".join(labs_found) + "\n}\n", encoding="utf-8")  # a line for each
    lines = [
        "# What the labs found",
        "",
        "`python -m proofs.labs` measures each claim on seeds 0, 1 and 2. Each lab states predictions with thresholds,",
        "and each is judged by the 95% bootstrap interval of its effect over the seeds: supported or refuted where the",
        "whole interval says so, else open. A lab is supported by all its predictions, refuted by one. The numbers are",
        "in LABS.json.",
        "",
        "| lab | verdict | predictions | each seed | budget, seconds a seed | claim | date, machine |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, entry in sorted(record.items()):
        said = ", ".join(found["verdict"] for found in entry["findings"])
        took = ", ".join(f"{found['seconds']:.0f}" for found in entry["findings"])
        held = [one["verdict"] for one in entry.get("predictions", ())]
        count = f"{held.count('supported')} of {len(held)}" if held else ""
        printed = f" (as printed: {entry['printed_verdict']})" if entry.get("printed_verdict") else ""
        lines.append(
            f"| {name} | {entry['verdict']}{printed} | {count} | {said} | {entry['budget']:g}: {took} "
            f"| {entry['claim'].replace('|', '/')} | {entry['date']}, {entry['machine']} |"
        )
    (folder / "LABS.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def run(names: list[str], folder: Path, again: bool = False) -> dict[str, Any]:
    """Measure what is missing, writing after each seed; the record."""
    record = judge_all(names, folder)
    for name in names:
        entry = {} if again else record.get(name, {})
        while not stands(entry, name) or len(entry["findings"]) < len(list_seeds(name)):
            entry = record_lab(name, entry)
            record = update(folder, {name: entry})
            last = entry["findings"][-1]
            print(f"{name} seed {last['seed']}: {last['verdict']} ({last['seconds']:.1f} s)", flush=True)
    return record


def judge_all(names: list[str], folder: Path) -> dict[str, Any]:
    """Judge anew what is recorded of labs as they are; the record."""
    record = read(folder)
    return update(
        folder, {name: judge_entry(name, record[name]) for name in names if stands(record.get(name, {}), name)}
    )


def write_ledger(record: dict[str, Any], folder: Path) -> None:
    """The page of all claims, from the record."""
    found = []
    for name, entry in sorted(record.items()):
        said = describe(labs.open_lab(name))
        each = {key: [finding[key] for finding in entry["findings"]] for key in ("seconds", "verdict")}
        seeds = {"seeds": [finding["seed"] for finding in entry["findings"]], "seconds": each["seconds"]}
        made = f"{entry['date']}, {entry['machine']}" + ("" if stands(entry, name) else "; the lab was changed since")
        found.append({**entry, **said, **seeds, "lab": name, "where": place(said["entries"]), "made": made})
    write_page(folder / "labs.html", make_ledger(found, {}, "made by python -m proofs.labs, from LABS.json"))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m proofs.labs", description=__doc__)
    parser.add_argument("labs", nargs="*", help="which labs; all by default")
    parser.add_argument("--again", action="store_true", help="measure also what is recorded")
    parser.add_argument("--judge", action="store_true", help="measure nothing; judge what is recorded")
    options = parser.parse_args()
    names = [name.replace("_", "-") for name in options.labs] or labs.names()
    for name in names:
        labs.open_lab(name)
    record = judge_all(names, HERE) if options.judge else run(names, HERE, options.again)
    write_ledger(record, HERE)
    verdicts = {
        name: record[name]["verdict"] if stands(record.get(name, {}), name) else "not recorded" for name in names
    }
    print("".join(f"{name}: {verdict}\n" for name, verdict in verdicts.items()), end="")
    return 1 if {"not recorded", "incomplete"} & set(verdicts.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
