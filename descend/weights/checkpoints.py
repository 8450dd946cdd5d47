"""Which folder of a run to open: resolve_checkpoint(run, "best"), "last" or a step.

    runs/demo/checkpoints/step-000200/, step-000300/     whole checkpoints, each with the list of its files
    runs/demo/checkpoints/best, last                     links, for people and for other programs

What is there decides, not the links alone: a run that was killed between writing a checkpoint and linking it has links
that are behind. `last` is the newest checkpoint whose files are all there; `best` is the step that the newest one calls
best, and what the link says where it names none.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from descend.errors import Mistake

CHECKSUMS = "checksums.json"


def step_name(step: int) -> str:
    """The folder of a step: step-000200; beyond 999,999 it has more digits."""
    return f"step-{step:06d}"


def step_of(name: str) -> int | None:
    """The step that a folder's name says: "step-000200" and "200" -> 200; None where it says none."""
    found = re.fullmatch(r"(?:step-)?(\d+)", name)
    return int(found[1]) if found else None


def checkpoint_names(folder: Path) -> list[str]:
    """The checkpoints in a run's `checkpoints` folder, oldest first, by number."""
    found = {p.name: step_of(p.name) for p in folder.glob("step-*") if p.is_dir()}
    return sorted((name for name, step in found.items() if step is not None), key=lambda name: (found[name], name))


def is_complete(checkpoint: Path) -> bool:
    """Whether every file of its list is there, with its size where the list says it. Nothing else is read."""
    try:
        listed = json.loads((checkpoint / CHECKSUMS).read_text(encoding="utf-8"))
        files: dict[str, Any] = listed.get("files", listed)
        return all(
            (checkpoint / name).stat().st_size == entry["bytes"]
            if isinstance(entry, dict)
            else (checkpoint / name).is_file()
            for name, entry in files.items()
        )
    except (OSError, ValueError, AttributeError, KeyError):
        return False


def resolve_checkpoint(run: str | Path, which: str | int = "best") -> Path:
    """The folder of a run's checkpoint: best, last, or a step (200, "200" or "step-000200").

    A model folder, or one checkpoint of a run, is its own best and last.
    """
    run = Path(run)
    if not run.is_dir():
        raise Mistake(f"{run} is not a folder; give a model folder or a run folder")
    folder = run / "checkpoints"
    if not folder.is_dir():
        if which in ("best", "last") or step_of(str(which)) == (step_of(run.name) or -1):
            return run
        raise Mistake(f"{run} is a model folder, not a run: it has no checkpoint {which!r}")
    intact = [name for name in checkpoint_names(folder) if is_complete(folder / name)]
    if not intact:
        raise Mistake(f"{folder} holds no checkpoint yet; continue training with: descend resume {run}")
    names = {step_of(name): name for name in intact}
    step = {"last": step_of(intact[-1]), "best": _best(folder, intact)}.get(str(which), step_of(str(which)))
    if step not in names:
        best = names.get(_best(folder, intact))
        there = ([f"best ({best})"] if best else []) + [f"last ({intact[-1]})", *map(str, names)]
        raise Mistake(f"{run} has no checkpoint {str(which)!r}; there are: {', '.join(there)}")
    return folder / names[step]


def _best(folder: Path, intact: list[str]) -> int | None:
    """The step that the newest checkpoint calls best, where that is there; else the one that `best` links to."""
    try:
        tree = json.loads((folder / intact[-1] / "state.json").read_text(encoding="utf-8"))["tree"]
        step = dict(tree["$dict"]).get("best_step")
    except (OSError, ValueError, KeyError, TypeError):
        step = None
    if step and step_name(step) in intact:
        return int(step)
    linked = (folder / "best").resolve().name
    return step_of(linked) if linked in intact else None
