"""runs: what was trained under a folder and how it went, from the files alone."""

from __future__ import annotations

import json as json_format
from pathlib import Path
from typing import Any

from descend.engine.progress import clock
from descend.report.listing import list_runs, summarize_run
from descend.report.scores import spell
from descend.verbs.table import format_table


def runs(folder: str | Path = "runs") -> list[dict[str, Any]]:
    """The runs in a folder and the two levels below it, the newest first.

    Args:
        folder: where the runs are.
    """
    return [summarize_run(path) for path in list_runs(Path(folder))]


def command(folder: Path = Path("runs"), /, *, json: bool = False) -> None:
    """List the runs under a folder: steps, best validation score, test score, loss, time, state.

    A run is running, finished, interrupted (resume continues it), failed or damaged.

    Args:
        folder: where the runs are.
        json: print a JSON list instead of a table.

    Examples:
        descend runs
        descend runs experiments/june
        descend runs --json
    """
    if folder == Path("runs") and not folder.exists():
        found = []
    else:
        found = runs(folder)
    if json:
        print(json_format.dumps(found, indent=1))
    elif not found:
        print(f"No runs in {folder} yet. To start one: descend train gpt2-pydoc")
    else:
        columns = ["run", "recipe", "step", "best", "test", "loss", "time", "state"]
        print(format_table(columns, [make_row(run) for run in found]))


def make_row(run: dict[str, Any]) -> list[Any]:
    """A run as a row of the table."""
    if "recipe" not in run:
        return [run["run"], "", "", "", "", "", "", run["state"]]
    of = f"{run['step']}/{run['steps']}" if run["steps"] else str(run["step"])
    best = "" if run["best"] is None else f"{run['score']} {run['best']:.4g}"
    test = find_test_score(run)
    loss = "" if run["loss"] is None else f"{run['loss']:.4g}"
    return [run["run"], run["recipe"], of, best, test, loss, clock(run["seconds"]), run["state"]]


def find_test_score(run: dict[str, Any]) -> str:
    """The watched score on the test data; of a regression R², since its loss has no unit."""
    tested = run["test"] or {}
    name = "r2" if "r2" in tested and run["score"] == "loss" else run["score"]
    if name not in tested:
        return ""
    return f"{tested[name]:.4g}" if name == run["score"] else f"{spell(name)} {tested[name]:.4g}"
