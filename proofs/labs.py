"""python -m proofs.labs [names]: run every lab at its own budget on seeds 0, 1 and 2, and record in LABS.json, LABS.md.

What was recorded for a seed is kept as long as neither the lab's file nor its budget has changed since: an interrupted
recording goes on where it stopped, and a second one measures only what is new (`--again` measures all).
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import sys
import time
from pathlib import Path
from typing import Any

from descend import labs
from descend.engine.hardware import describe_environment
from descend.labs._examine import examine, gather

HERE = Path(__file__).parent
SEEDS = (0, 1, 2)
LONGEST = 64  # numbers in a row that are kept; longer ones are curves, images and maps for the figure


def mark_source(name: str) -> str:
    """A mark of what decides a lab's numbers: its file."""
    path = Path(labs.__file__).parent / f"{name.replace('-', '_')}.py"
    return hashlib.sha256(path.read_bytes()).hexdigest()[:12]


def shorten(value: Any) -> Any:
    """Six significant digits, without long rows; NaN and infinity, which JSON lacks, as None."""
    if isinstance(value, bool) or not isinstance(value, float | dict | list):
        return value
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: shorten(part) for key, part in value.items() if not is_long(part)}
    return [shorten(part) for part in value if not is_long(part)]


def is_long(value: Any) -> bool:
    return isinstance(value, list) and len(value) > LONGEST


def stands(entry: dict[str, Any], name: str) -> bool:
    """Whether what is recorded is of this lab as it is now."""
    return bool(entry) and entry["source"] == mark_source(name) and entry["budget"] == labs.open_lab(name).BUDGET


def record_lab(name: str, entry: dict[str, Any]) -> dict[str, Any]:
    """The entry with one more seed measured, and the verdict over all that there are."""
    old = entry if stands(entry, name) else {"findings": []}
    seed = next(seed for seed in SEEDS if seed not in [found["seed"] for found in old["findings"]])
    found = examine(name, seed)
    kept = ("seed", "seconds", "numbers", "verdict", "effects", "needs")
    findings = [*old["findings"], shorten({key: found[key] for key in kept if key in found})]
    whole = gather([{**found, **one} for one in findings])
    here = describe_environment()
    return {
        "claim": found["claim"],
        "budget": found["budget"],
        "verdict": whole["verdict"] if len(findings) == len(SEEDS) else "incomplete",
        "findings": findings,
        "mean": shorten(whole["mean"]),
        "spread": shorten(whole["spread"]),
        "source": mark_source(name),
        "date": time.strftime("%Y-%m-%d"),
        "machine": f"{here['cpu']}, 1 of {here['cores']} cores, torch {here['torch']}",
    }


def read(folder: Path) -> dict[str, Any]:
    path = folder / "LABS.json"
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return found


def write(record: dict[str, Any], folder: Path) -> None:
    """The record, and a table to read."""
    labs_found = [f"{json.dumps(name)}: {json.dumps(entry, sort_keys=True)}" for name, entry in sorted(record.items())]
    (folder / "LABS.json").write_text("{\n" + ",\n".join(labs_found) + "\n}\n", encoding="utf-8")  # a line for each
    lines = [
        "# What the labs found",
        "",
        "`python -m proofs.labs` measures each claim on seeds 0, 1 and 2. Supported or refuted: every seed says so;",
        "mixed: they disagree; open: a seed could not tell. The numbers are in LABS.json.",
        "",
        "| lab | verdict | seeds | budget, seconds a seed | claim | date, machine |",
        "|---|---|---|---|---|---|",
    ]
    for name, entry in sorted(record.items()):
        said = ", ".join(found["verdict"] for found in entry["findings"])
        took = ", ".join(f"{found['seconds']:.0f}" for found in entry["findings"])
        lines.append(
            f"| {name} | {entry['verdict']} | {said} | {entry['budget']:g}: {took} "
            f"| {entry['claim'].replace('|', '/')} | {entry['date']}, {entry['machine']} |"
        )
    (folder / "LABS.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def run(names: list[str], folder: Path, again: bool = False) -> dict[str, Any]:
    """Measure what is missing, writing after each seed; the record."""
    record = read(folder)
    for name in names:
        entry = {} if again else record.get(name, {})
        while not stands(entry, name) or len(entry["findings"]) < len(SEEDS):
            entry = record[name] = record_lab(name, entry)
            write(record, folder)
            last = entry["findings"][-1]
            print(f"{name} seed {last['seed']}: {last['verdict']} ({last['seconds']:.1f} s)", flush=True)
    gone = [name for name in record if name not in labs.names()]
    for name in gone:
        del record[name]
    write(record, folder)
    return record


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m proofs.labs", description=__doc__)
    parser.add_argument("labs", nargs="*", help="which labs; all by default")
    parser.add_argument("--again", action="store_true", help="measure also what is recorded")
    options = parser.parse_args()
    names = [name.replace("_", "-") for name in options.labs] or labs.names()
    for name in names:
        labs.open_lab(name)
    record = run(names, HERE, options.again)
    return 0 if all(record[name]["verdict"] in ("supported", "refuted") for name in names) else 1


if __name__ == "__main__":
    sys.exit(main())
