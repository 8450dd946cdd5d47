"""A run is a folder: what was asked (recipe.json), what happened (metrics.jsonl), what came out (checkpoints/)."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from descend.engine import replacement
from descend.engine.background import Writer
from descend.engine.board import Board
from descend.engine.replacement import NEXT, RECIPE, check_place
from descend.errors import Mistake, naming
from descend.files import parse_metrics, read_bytes, read_json, sync, write_text
from descend.web.markup import html

ENDS = ("finished", "patience")  # events that end a run for good
NO_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS)  # a file system that has none


class Report:
    """report.html of a run: a path, and in a notebook the page itself."""

    def __init__(self, path: Path):
        self.path = path

    def __fspath__(self) -> str:
        return str(self.path)

    def __repr__(self) -> str:
        return str(self.path) if self.path.is_file() else f"{self.path} (not yet written)"

    def _repr_html_(self) -> str:
        if not self.path.is_file():
            return html("{}", repr(self))
        frame = '<iframe srcdoc="{}" style="width: 100%; height: 40em; border: 0" sandbox="allow-scripts"></iframe>'
        return html(frame, self.path.read_text(encoding="utf-8"))


class Run:
    """The files of one run. Metrics are appended a line at a time, so that a killed run loses at most the last one.

    `folder` holds them; `metrics()` is the table of what was logged, `report` the page, `recipe` what was asked for.
    """

    def __init__(self, folder: Path):
        self.folder = folder
        self.checkpoints = folder / "checkpoints"
        self.metrics_file = folder / "metrics.jsonl"
        self.writer = Writer()  # of checkpoints
        self._board: Board | None = None

    @classmethod
    def create(cls, folder: Path, recipe: dict[str, Any], replace: bool = False) -> Run:
        """A new folder with its recipe.json; an existing run is replaced only when asked to (`engine.replacement`)."""
        check_place(folder, replace)
        folder.mkdir(parents=True, exist_ok=True)
        with cls(folder).locked():
            check_place(folder, replace)  # another process may have been faster
            stayed = replacement.begin(folder, recipe)
        if stayed:
            print(f"{folder}: these files are not those of a run and stay: {', '.join(stayed)}", file=sys.stderr)
        sync(folder.absolute().parent)
        return cls(folder)

    @classmethod
    def open(cls, folder: str | Path) -> Run:
        """An existing run. A replacement that a crash interrupted is finished first."""
        folder = Path(folder)
        if not (folder / RECIPE).exists():
            raise Mistake(f"{folder} is not a run folder (no recipe.json); descend runs lists the runs")
        if (folder / NEXT).exists():
            with cls(folder).locked():
                if (folder / NEXT).exists():
                    replacement.finish(folder)
        return cls(folder)

    @property
    def recipe(self) -> dict[str, Any]:
        """The content of recipe.json."""
        return read_json(self.folder / RECIPE)

    @property
    def report(self) -> Report:
        """report.html: shown in place by a notebook, a path everywhere else."""
        return Report(self.folder / "report.html")

    def __repr__(self) -> str:
        if not (self.folder / RECIPE).exists():
            return f"<Run {self.folder}: nothing there yet>"
        lines = self.lines()
        scores: dict[str, float] = next((line["valid"] for line in reversed(lines) if "valid" in line), {})
        ends = [line["event"] for line in lines if line.get("event") in ENDS]
        parts = [str(self.recipe.get("name", "")), f"step {lines[-1]['step'] if lines else 0}", *ends[-1:]]
        parts += [f"validation {name} {value:.4g}" for name, value in scores.items()]
        return f"<Run {self.folder}: {', '.join(parts)}>"

    def metrics(self) -> dict[str, list[float | None]]:
        """What was logged, as columns: {"step": [1, 2, ..], "loss": [..], "valid.loss": [None, .., 0.4]}.

        A row for each step that was logged; None where a value was not measured. `pandas.DataFrame(run.metrics())`
        makes a data frame of it.
        """
        rows: dict[int, dict[str, float]] = {}
        for line in self.lines():
            if "event" not in line:
                rows.setdefault(line["step"], {}).update(flatten(line))
        names = dict.fromkeys(name for row in rows.values() for name in row)
        return {name: [row.get(name) for row in rows.values()] for name in names}

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Inside, no other process can train in this folder. The lock ends with the process, however it ends."""
        lock = self.folder / "lock"
        with lock.open("ab", buffering=0) as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise Mistake(f"another process is training in {self.folder}") from None
            except OSError as error:
                if error.errno not in NO_LOCKS:
                    raise
            with naming(lock):
                file.truncate(0)
                file.write(str(os.getpid()).encode())
            replacement.clean(self.folder)
            yield

    def log(self, line: dict[str, Any]) -> None:
        """Append a line to metrics.jsonl, and its numbers to TensorBoard. An event, such as the end of the run, is told
        only once the checkpoint before it is on disk."""
        if "event" in line:
            self.writer.wait()
        with naming(self.metrics_file), self.metrics_file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        tags = {}
        for name, value in line.items():
            for key, number in value.items() if isinstance(value, dict) else [("train", value)]:
                if isinstance(number, float) and name != "time":
                    group = line.get("event", name) if name == "scores" else name
                    tags[f"{key}/{name}" if key == "train" else f"{group}/{key}"] = number
        if tags:
            self._board = self._board or Board(self.folder / "tensorboard")
            self._board.add(tags, line["step"])

    def sync(self) -> None:
        """Wait until the metrics so far are on disk: before the checkpoint of their step is."""
        if self.metrics_file.exists():
            sync(self.metrics_file)

    def close(self) -> None:
        """Finish what is being written."""
        try:
            self.writer.wait()
        finally:
            self.writer.copies.clear()
            board, self._board = self._board, None
            if board is not None:
                board.flush()

    def lines(self) -> list[dict[str, Any]]:
        """The metrics so far; what is no line of metrics (half written, damaged) is left out."""
        found = []
        for text in read_bytes(self.metrics_file, most=2**40).splitlines() if self.metrics_file.exists() else ():
            line = parse_metrics(text)
            if line is not None:
                found.append(line)
        return found

    def forget_after(self, step: int, ended: str = "") -> None:
        """Drop the metrics of steps that a resume will take again, and an end that it will reach again, with what came
        after that end (the scores of the test data). `ended`: the end that was reached at this step, which stays."""
        kept: list[dict[str, Any]] = []
        forgotten = False  # an end: what is scored after it will be scored again, after the new one
        for line in self.lines():
            at, event = line.get("step", 0), line.get("event")
            if event in ENDS and (at, event) != (step, ended):
                forgotten = True
            elif at <= step and not (forgotten and event):
                kept.append(line)
        write_text(self.metrics_file, "".join(json.dumps(line) + "\n" for line in kept))


def flatten(line: dict[str, Any]) -> dict[str, float]:
    """The numbers of a line: {"valid": {"loss": 1.0}} -> {"valid.loss": 1.0}"""
    found: dict[str, float] = {}
    for name, value in line.items():
        if isinstance(value, dict):
            found |= {f"{name}.{key}": number for key, number in flatten(value).items()}
        elif isinstance(value, int | float):
            found[name] = value
    return found
