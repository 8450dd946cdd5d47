"""A run is a folder: what was asked (recipe.json), what happened (metrics.jsonl), what came out (checkpoints/)."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from descend.engine.background import Writer
from descend.errors import Mistake
from descend.weights.folder import write_json
from descend.weights.layout import read_json


class Run:
    """The files of one run. Metrics are appended a line at a time, so that a killed run loses at most the last one."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.checkpoints = folder / "checkpoints"
        self.metrics = folder / "metrics.jsonl"
        self.writer = Writer()  # of checkpoints
        self._board: Any = None

    @classmethod
    def create(cls, folder: Path, recipe: dict[str, Any], replace: bool = False) -> Run:
        """A new folder with its recipe.json; an existing run is replaced only when asked to."""
        if (folder / "recipe.json").exists():
            if not replace:
                raise Mistake(f"{folder} already holds a run; continue it (descend resume {folder}) or give --replace")
            with cls(folder).locked():
                for path in folder.iterdir():
                    if path.name != "lock":
                        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        elif folder.exists() and any(folder.iterdir()):
            raise Mistake(f"{folder} is not empty and not a run; choose another --out")
        folder.mkdir(parents=True, exist_ok=True)
        write_json(folder / "recipe.json", recipe)
        return cls(folder)

    @classmethod
    def open(cls, folder: str | Path) -> Run:
        """An existing run."""
        folder = Path(folder)
        if not (folder / "recipe.json").exists():
            raise Mistake(f"{folder} is not a run folder (no recipe.json); descend runs lists the runs")
        return cls(folder)

    @property
    def recipe(self) -> dict[str, Any]:
        return read_json(self.folder / "recipe.json")

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Inside, no other process can train in this folder. The lock ends with the process, however it ends."""
        with (self.folder / "lock").open("a+") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise Mistake(f"another process is training in {self.folder}") from None
            file.truncate(0)
            file.write(str(os.getpid()))
            file.flush()
            yield

    def log(self, line: dict[str, Any]) -> None:
        """Append a line to metrics.jsonl, and its numbers to TensorBoard. An event, such as the end of the run, is told
        only once the checkpoint before it is on disk."""
        if "event" in line:
            self.writer.wait()
        with self.metrics.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        for name, value in line.items():
            for key, number in value.items() if isinstance(value, dict) else [("train", value)]:
                if isinstance(number, float) and name != "time":
                    tag = f"{key}/{name}" if key == "train" else f"{name}/{key}"
                    self.board().add_scalar(tag, number, line["step"])

    def board(self) -> Any:
        """The TensorBoard writer, opened when first needed."""
        if self._board is None:
            from torch.utils.tensorboard import SummaryWriter

            self._board = SummaryWriter(str(self.folder / "tensorboard"), max_queue=1000, flush_secs=30)
        return self._board

    def close(self) -> None:
        """Finish what is being written."""
        if self._board is not None:
            self._board.close()
            self._board = None
        self.writer.wait()
        self.writer.copies.clear()

    def lines(self) -> list[dict[str, Any]]:
        """The metrics so far; a half-written last line is left out."""
        if not self.metrics.exists():
            return []
        found = []
        for text in self.metrics.read_text(encoding="utf-8").splitlines():
            try:
                found.append(json.loads(text))
            except json.JSONDecodeError:
                continue
        return found

    def forget_after(self, step: int) -> None:
        """Drop the metrics of steps that a resume will take again."""
        kept = [line for line in self.lines() if line.get("step", 0) <= step]
        aside = self.metrics.with_name(".metrics.jsonl")
        aside.write_text("".join(json.dumps(line) + "\n" for line in kept), encoding="utf-8")
        os.replace(aside, self.metrics)
