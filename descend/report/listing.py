"""The runs under a folder and how they went, from their files alone. Needs no torch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from descend.errors import Mistake
from descend.report.history import History, as_number, read_history


def list_runs(folder: Path) -> list[Path]:
    """The run folders in a folder and the two levels below it, the newest first."""
    if not folder.is_dir():
        raise Mistake(f"{folder} is not a folder; give the folder that holds the runs")
    found = [path.parent for pattern in ("", "*/", "*/*/") for path in folder.glob(f"{pattern}recipe.json")]
    return sorted(found, key=lambda path: (path / "recipe.json").stat().st_mtime, reverse=True)


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
