"""The two folders that the studio touches: that of the runs, and that of the user's data. Nothing outside is opened."""

from __future__ import annotations

import re
from pathlib import Path

from descend.errors import Mistake

OWN = ".studio"  # of the folder of runs: the queue, logs, and files that were dropped
NAME = re.compile(r"[^\w.-]+")
NEW = re.compile(r"\w[\w.-]{0,63}(/\w[\w.-]{0,63}){0,2}")
LONGEST = 100  # characters of a file's name


class Place:
    """Paths as pages name them, relative to the folder of the runs."""

    def __init__(self, runs: Path, data: Path):
        self.runs, self.data = runs.resolve(), data.resolve()
        self.own = self.runs / OWN

    def find_run(self, name: str) -> Path:
        """A run's folder by its name in the list of runs."""
        path = self.enclose(self.runs / name, self.runs, "run")
        if not (path / "recipe.json").is_file():
            raise Mistake(f"there is no run {name!r} in {self.runs}")
        return path

    def name_run(self, path: Path) -> str:
        return path.resolve().relative_to(self.runs).as_posix()

    def find_file(self, run: Path, name: str) -> Path:
        """A file of a run."""
        path = self.enclose(run / name, run, "file")
        if not path.is_file():
            raise Mistake(f"{self.name_run(run)} has no file {name!r}")
        return path

    def check_new_run(self, name: str) -> Path:
        """Where a new run goes."""
        if not NEW.fullmatch(name):
            raise Mistake(f"name {name[:LONGEST]!r}: give letters, digits, - and _, as in digits/first")
        return self.enclose(self.runs / name, self.runs, "name")

    def find_data(self, text: str) -> Path:
        """A path of the user's data: in the folder that the studio was started in, or in that of the runs."""
        path = (self.data / text).resolve()
        if not any(path == home or home in path.parents for home in (self.data, self.runs)):
            raise Mistake(
                f"{text!r} is outside of {self.data}; start the studio in the folder of your data, or drop the file"
            )
        return path

    def enclose(self, path: Path, home: Path, what: str) -> Path:
        """The path, if it is inside, whatever links and dots say."""
        try:
            found = path.resolve()
        except (OSError, ValueError, RuntimeError):
            raise Mistake(f"this is not the name of a {what}") from None
        if found == home.resolve() or home.resolve() not in found.parents:
            raise Mistake(f"the {what} is outside of the folder of the studio")
        return found


def clean_name(name: str) -> str:
    """A dropped file's name without what a shell or a folder might misread."""
    found = NAME.sub("-", Path(name.replace("\\", "/")).name).strip(".-")[-LONGEST:]
    if not found:
        raise Mistake(f"{name[:LONGEST]!r} is no name for a file; rename it, such as table.csv")
    return found
