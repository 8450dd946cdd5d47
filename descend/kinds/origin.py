"""Where a recipe's data come from: the user's files, named relative to what `path` says.

Any field `path` of a recipe's data names a file or a folder. Of a folder all files count but hidden ones, and of a
list of images also those it names, wherever they lie. A run inside of a folder is no data.
"""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import Any

RUN = "recipe.json"  # what a run's folder holds


def find_files(data: Any) -> dict[str, Path]:
    """Name, relative to what `path` says -> file."""
    found: dict[str, Path] = {}
    for field in dataclasses.fields(data) if dataclasses.is_dataclass(data) else ():
        value = getattr(data, field.name)
        if dataclasses.is_dataclass(value):
            found |= find_files(value)
        elif field.name == "path" and isinstance(value, str) and value:
            path = Path(value)
            found |= _name(_walk(path) if path.is_dir() else [path], path)
    return found


def find_listed(path: str) -> dict[str, Path]:
    """The images that a list names: the file at this path, or the list in the folder there."""
    from descend.data.images.manifest import is_manifest, read_manifest
    from descend.data.images.source import LISTS

    here = Path(path)
    lists = [here / name for name in LISTS if (here / name).is_file()][:1] if here.is_dir() else [here]
    listed = [image for file in lists if path and is_manifest(file) for image in read_manifest(file).paths]
    return _name(listed, here)


def _name(files: list[Path], path: Path) -> dict[str, Path]:
    root = path if path.is_dir() else path.parent
    return {Path(os.path.relpath(file, root)).as_posix(): file for file in files if file.is_file()}


def _walk(folder: Path) -> list[Path]:
    """The files of a folder and of those in it, also behind links, each folder once."""
    found: list[Path] = []
    seen: set[str] = set()
    for here, folders, names in os.walk(folder, followlinks=True):
        real = os.path.realpath(here)
        if real in seen or RUN in names:
            folders.clear()
            continue
        seen.add(real)
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        found += [Path(here, name) for name in sorted(names) if not name.startswith(".")]
    return found
