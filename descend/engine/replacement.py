"""Which files in a folder are those of a run, and how a new run takes the place of an old one.

    1  replacing.json    the new recipe: written aside, synced, renamed. Before this the old run is whole
    2  remove            checkpoints, metrics, report, TensorBoard's events: what a run wrote, and nothing else
    3  recipe.json       replacing.json, renamed

After a crash between 1 and 3, whoever opens the folder next goes on with 2. Files of other people stay and are named.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from descend.errors import Mistake
from descend.files import read_json, sync, write_json

RECIPE, NEXT = "recipe.json", "replacing.json"
ASIDE = (".recipe.json.*", ".replacing.json.*", ".metrics.jsonl.*")  # what a crash leaves half written
EMPTY = ("lock", *ASIDE)  # what a folder may hold in which no run was begun
WRITTEN = ("metrics.jsonl", "report.html", ".report.html*", *ASIDE)
INSIDE = {
    "checkpoints": ("step-*", "last", "best", ".*"),
    "samples": ("step-*.png", ".step-*"),
    "tensorboard": ("events.out.tfevents.*",),
}


def check_place(folder: Path, replace: bool) -> None:
    """Refuse a folder that a run cannot be written to; nothing is touched."""
    there = next(path for path in (folder, *folder.absolute().parents) if os.path.lexists(path))
    if not there.is_dir():
        raise Mistake(f"--out {folder}: {there} is a file, not a folder; choose another --out")
    if not os.access(there, os.W_OK | os.X_OK):
        raise Mistake(f"--out {folder}: nothing can be written in {there}; change its mode or choose another --out")
    if not folder.is_dir():
        return
    if os.path.lexists(folder / RECIPE):
        check_ours(folder)
        if not replace:
            raise Mistake(f"{folder} already holds a run; continue it (descend resume {folder}) or give --replace")
    elif foreign := [path.name for path in folder.iterdir() if not matches(path.name, EMPTY)]:
        raise Mistake(f"{folder} is not empty and not a run (it holds {foreign[0]}); choose another --out")


def check_ours(folder: Path) -> None:
    """Refuse a recipe.json that is not that of a run."""
    try:
        content: dict[str, Any] = read_json(folder / RECIPE)
    except Mistake as mistake:
        raise Mistake(f"{mistake}; remove {folder} yourself, or choose another --out") from None
    if not isinstance(content.get("descend"), str) or not isinstance(content.get("values"), dict):
        raise Mistake(f"{folder / RECIPE} is not that of a run of descend; choose another --out")


def begin(folder: Path, recipe: dict[str, Any]) -> list[str]:
    """Write the recipe of a new run, in the place of the run that is there; returns the names of files that stayed.

    The caller holds the lock.
    """
    if not (folder / RECIPE).exists():
        write_json(folder / RECIPE, recipe)
        return []
    write_json(folder / NEXT, recipe)
    finish(folder)
    return sorted(path.name for path in folder.iterdir() if path.name not in (RECIPE, "lock"))


def finish(folder: Path) -> None:
    """Remove what the old run wrote, then let the new recipe take its place. The caller holds the lock."""
    for path in list_written(folder):
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink(missing_ok=True)
    for name in INSIDE:
        path = folder / name
        if path.is_dir() and not path.is_symlink() and not any(path.iterdir()):
            path.rmdir()
    sync(folder)
    os.replace(folder / NEXT, folder / RECIPE)
    sync(folder)


def list_written(folder: Path) -> Iterator[Path]:
    """What a run wrote, but for its recipe."""
    yield from (path for path in folder.iterdir() if matches(path.name, WRITTEN))
    for name, patterns in INSIDE.items():
        if (folder / name).is_dir():
            yield from (path for path in (folder / name).iterdir() if matches(path.name, patterns))


def clean(folder: Path) -> None:
    """Remove what a crash left half written."""
    for path in list(folder.iterdir()):
        if matches(path.name, ASIDE):
            path.unlink()


def matches(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)
