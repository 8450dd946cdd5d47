"""diff: two runs side by side: the values that differ, and the first step at which their curves part."""

from __future__ import annotations

import json as json_format
from pathlib import Path
from typing import Any

from descend.report.difference import compare_flags, count_shared, find_partings
from descend.report.history import read_history
from descend.report.listing import summarize_run
from descend.verbs.table import format_table

SHOWN = 12  # metrics whose parting is printed


def diff(first: str | Path, second: str | Path) -> dict[str, Any]:
    """What two runs were asked to do differently, how each ended, and where their curves part.

    Args:
        first: a run's folder.
        second: another's.

    Returns:
        {"flags": {name: [first, second]}, "runs": [both as `runs` lists them], "shared": steps that both measured,
        "parts": [{"name", "step", "first", "second"}], the earliest first; empty where the curves are the same}
    """
    one, other = read_history(Path(first)), read_history(Path(second))
    return {
        "flags": compare_flags([one, other]),
        "runs": [summarize_run(Path(first)), summarize_run(Path(second))],
        "shared": count_shared(one, other),
        "parts": [parting._asdict() for parting in find_partings(one, other)],
    }


def command(first: Path, second: Path, /, *, json: bool = False) -> None:
    """Two runs side by side: the values that differ, their scores, and the first step at which their curves part.

    Args:
        first: a run's folder.
        second: another's.
        json: print JSON instead of text.

    Examples:
        descend diff runs/a runs/b
        descend diff runs/a runs/b --json
    """
    found = diff(first, second)
    if json:
        print(json_format.dumps(found, indent=1))
        return
    names = [str(first), str(second)]
    flags = [[name, *map(str, pair)] for name, pair in found["flags"].items()]
    print(format_table(["value", *names], flags) if flags else "The same values.")
    print()
    print(format_table(["", *names], list_scores(found["runs"])))
    print()
    print(tell_partings(found))


def list_scores(runs: list[dict[str, Any]]) -> list[list[str]]:
    """State, steps and best score of both."""
    best = [f"{run['score']} {run['best']:.5g}" if run.get("best") is not None else "" for run in runs]
    return [
        ["state", *(str(run["state"]) for run in runs)],
        ["step", *(str(run.get("step", "")) for run in runs)],
        ["best", *best],
    ]


def tell_partings(found: dict[str, Any]) -> str:
    """Where the curves part, in words."""
    if not found["shared"]:
        return "The runs have measured nothing at the same steps."
    if not found["parts"]:
        return f"The curves are the same, to the bit, at all {found['shared']:,} steps that both have measured."
    shown = [f"  step {p['step']:,}: {p['name']} {p['first']:.6g} and {p['second']:.6g}" for p in found["parts"]]
    more = [f"  and {len(shown) - SHOWN} more"] if len(shown) > SHOWN else []
    return "\n".join([f"The curves part at step {found['parts'][0]['step']:,}:", *shown[:SHOWN], *more])
