"""Which folder of a run to open: resolve_checkpoint(run, "best"), "last" or a step.

    runs/demo/checkpoints/step-000200/, step-000300/     whole checkpoints, each with the list of its files
    runs/demo/checkpoints/best, last                     links, for people and for other programs

What is there decides, not the links alone: a run that was killed between writing a checkpoint and linking it has links
that are behind. `last` is the newest checkpoint whose files are all there; `best` is the step that the newest one calls
best, and what the link says where it names none.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from descend.errors import Mistake
from descend.files import field, read_json

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
    found = {p.name: step_of(p.name) for p in list_folder(folder) if p.name.startswith("step-") and p.is_dir()}
    return sorted((name for name, step in found.items() if step is not None), key=lambda name: (found[name], name))


def list_folder(folder: Path) -> list[Path]:
    """What is in a folder; nothing where there is none. One that cannot be read is an error: a run whose checkpoints
    are out of reach must not begin anew."""
    try:
        return list(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []


def is_complete(checkpoint: Path) -> bool:
    """Whether every file of its list is there, with its size where the list says it. Nothing else is read."""
    try:
        listed = read_json(checkpoint / CHECKSUMS)
        files = field(listed, "files", dict, CHECKSUMS) if "files" in listed else listed
        return all(
            (checkpoint / name).stat().st_size == entry["bytes"]
            if isinstance(entry, dict)
            else (checkpoint / name).is_file()
            for name, entry in files.items()
        )
    except (Mistake, OSError, ValueError, KeyError):
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
    found = checkpoint_names(folder)
    intact = [name for name in found if is_complete(folder / name)]
    if not intact:
        fault = f"only damaged checkpoints ({', '.join(found)})" if found else "no checkpoint yet"
        raise Mistake(f"{folder} holds {fault}; continue training with: descend resume {run}")
    names = {step_of(name): name for name in intact}
    step = {"last": step_of(intact[-1]), "best": find_best(folder, intact)}.get(str(which), step_of(str(which)))
    if which == "last" and intact[-1] != found[-1]:
        print(f"descend: checkpoint {found[-1]} is damaged; {intact[-1]} is opened instead", file=sys.stderr)
    if step not in names:
        best = names.get(find_best(folder, intact))
        there = ([f"best ({best})"] if best else []) + [f"last ({intact[-1]})", *map(str, names)]
        raise Mistake(f"{run} has no checkpoint {str(which)!r}; there are: {', '.join(there)}")
    return folder / names[step]


def find_best(folder: Path, intact: list[str]) -> int | None:
    """The step that the newest checkpoint calls best, where that is there; else the one that `best` links to."""
    try:
        tree = field(read_json(folder / intact[-1] / "state.json"), "tree", dict, "state.json")
        step = dict(tree["$dict"]).get("best_step")
    except (Mistake, ValueError, KeyError, TypeError):
        step = None
    if isinstance(step, int) and step > 0 and step_name(step) in intact:
        return step
    linked = read_link(folder / "best")
    return step_of(linked) if linked in intact else None


def read_link(path: Path) -> str:
    """The name of the folder that a link points to; nothing where there is no link."""
    try:
        return Path(os.readlink(path)).name
    except OSError:
        return ""
