"""runs: what was trained under a folder and how it went, from the files alone."""

from __future__ import annotations

import json as json_format
from pathlib import Path
from typing import Any

from descend.engine.progress import clock
from descend.errors import Mistake
from descend.report.history import History, as_number, read_history
from descend.report.scores import spell
from descend.verbs.table import format_table


def runs(folder: str | Path = "runs") -> list[dict[str, Any]]:
    """The runs in a folder and the two levels below it, the newest first.

    Args:
        folder: where the runs are.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise Mistake(f"{folder} is not a folder; give the folder that holds the runs")
    found = [path.parent for pattern in ("", "*/", "*/*/") for path in folder.glob(f"{pattern}recipe.json")]
    found.sort(key=lambda path: (path / "recipe.json").stat().st_mtime, reverse=True)
    return [summarize_run(path) for path in found]


def summarize_run(path: Path) -> dict[str, Any]:
    """One run: numbers where there are any, else None."""
    try:
        history = read_history(path)
    except Mistake as mistake:
        return {"run": str(path), "state": "damaged", "fault": str(mistake)}
    best = history.best
    return {
        "run": str(path),
        "recipe": history.name,
        "step": history.step,
        "steps": history.steps,
        "score": history.watch[1] if best else None,
        "best": best[1] if best else None,
        "test": history.tested or None,
        "loss": find_last_loss(history),
        "seconds": history.seconds,
        "state": history.state,
    }


def find_last_loss(history: History) -> float | None:
    """The last training loss; the sum over the players where there are several."""
    if not history.train:
        return None
    return sum(as_number(history.train[-1].get(name)) for name in history.losses)


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
