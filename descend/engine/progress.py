"""Progress of a run: one live line in a terminal or a notebook, a few plain lines in a file or pipe.

    gpt2-pydoc ━━━━━━━━━━━ 120/600  loss 3.214  0:12 < 0:48  best 3.301  12.3k tokens/s  512 MB

The engine calls `update` at every step, so a call that draws nothing must cost nothing: it keeps the mean of the loss
and looks at the clock. Where nobody reads any more (the terminal or the pipe has gone) the run goes on in silence.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from importlib import import_module
from math import isnan
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, TextIO

if TYPE_CHECKING:
    from rich.live import Live
    from rich.table import Table

REDRAW = 0.1  # seconds between two drawings of the live line
REPORT = 10.0  # seconds between two plain lines
CELL = 0.5  # seconds between two drawings in a notebook
OFTEN = 20  # evaluations that are plain lines of their own; after these, a line a second at most
KEEP = 0.95  # how much of the smoothed loss is kept at each step


class Progress:
    """A context manager; the run's name, its steps and what its throughput counts are known at the start.

    `watch` says which validation score is shown and which of its values is the best ("min loss", "max accuracy").
    """

    def __init__(
        self, name: str, steps: int, unit: str = "examples", watch: str = "min loss", file: TextIO | None = None
    ):
        self.name, self.steps, self.unit = name, steps, unit
        self.direction, _, self.watched = watch.partition(" ")
        self.file = sys.stderr if file is None else file
        self.live: Live | None = None
        self.cell: Cell | None = None
        self.lines = 0
        self.first = self.step = self.shown = -1
        self.rate = self.sum = self.weight = 0.0
        self.best: float | None = None
        self.wait = REPORT
        self.began = self.drawn = time.monotonic()

    def __enter__(self) -> Progress:
        self.began = self.drawn = time.monotonic()
        self.cell = open_cell(f"{self.name}: {self.steps:,} steps") if self.file is sys.stderr else None
        if self.cell is not None:
            self.wait = CELL
        elif self.file.isatty() and os.environ.get("TERM") != "dumb":
            from rich.console import Console
            from rich.live import Live

            self.wait = REDRAW
            # No refresh thread: the engine's steps drive the drawing, and training keeps all the cores.
            self.live = Live(console=Console(file=self.file), auto_refresh=False, transient=False)
            with suppress(OSError):
                self.live.start()
        else:
            self.write(f"{self.name}: {self.steps:,} steps")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.step > self.shown:
            self.draw()
        if self.live is not None:
            with suppress(OSError):
                self.live.stop()

    def update(self, step: int, loss: float, rate: float, valid: dict[str, float] | None = None) -> None:
        """A step has been taken: its loss, units a second, and the validation scores if this step was evaluated."""
        if valid is None:
            self.sum = KEEP * self.sum + (1 - KEEP) * loss
            self.weight = KEEP * self.weight + (1 - KEEP)
        self.step, self.rate = step, rate
        if self.first < 0:
            self.first = step - 1
        if valid is None and time.monotonic() - self.drawn < self.wait:
            return
        if valid is not None and self.watched in valid:
            value = valid[self.watched]
            if (
                self.best is None
                or isnan(self.best)
                or (value > self.best if self.direction == "max" else value < self.best)
            ):
                self.best = value
        if self.live is None and self.lines >= OFTEN and time.monotonic() - self.drawn < min(1.0, self.wait):
            return
        self.draw()

    def message(self, text: str) -> None:
        """A line of its own, above the live one."""
        if self.live is not None:
            with suppress(OSError):
                self.live.console.print(text, markup=False, highlight=False)
        else:
            self.write(text)

    def draw(self) -> None:
        self.drawn, self.shown = time.monotonic(), self.step
        if self.live is not None:
            with suppress(OSError):
                self.live.update(self.line(), refresh=True)
            return
        text = "  ".join([f"{self.name} {self.step}/{self.steps}", *self.fields()])
        self.lines += 1
        if self.cell is not None:
            self.cell.update({"text/plain": text}, raw=True)
        else:
            self.write(text)

    def fields(self) -> list[str]:
        """What is known, the most important first."""
        elapsed = time.monotonic() - self.began
        taken = self.step - self.first
        left = elapsed / taken * (self.steps - self.step) if taken else 0.0
        fields = [f"loss {steady(self.sum / self.weight)}"] if self.weight else []
        fields.append(f"{clock(elapsed)} < {clock(left)}" if self.step < self.steps else clock(elapsed))
        if self.best is not None:
            fields.append(f"best {'' if self.watched == 'loss' else self.watched + ' '}{steady(self.best)}")
        return [*fields, f"{short(self.rate)} {self.unit}/s", f"{resident() / 2**20:.0f} MB"]

    def line(self) -> Table:
        """The live line: name, bar, numbers. In a narrow terminal the last numbers give way to the bar."""
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        assert self.live is not None
        head, fields = f"{self.name} ", self.fields()
        count = f" {self.step}/{self.steps}"
        room = self.live.console.width - len(head) - len(count) - 8
        while fields and sum(len(field) + 2 for field in fields) > room:
            fields.pop()
        numbers = Text(count, style="bold").append("".join(f"  {field}" for field in fields), style="not bold")
        bar = ProgressBar(total=max(self.steps, 1), completed=self.step)
        table = Table.grid(expand=True)
        table.add_column(no_wrap=True)
        table.add_column(ratio=1)
        table.add_column(no_wrap=True)
        table.add_row(Text(head), bar, numbers)
        return table

    def write(self, text: str) -> None:
        try:
            print(text, file=self.file, flush=True)
        except OSError:
            self.give_up()

    def give_up(self) -> None:
        """Nobody reads any more: what is still to be written, now and at exit, goes nowhere."""
        with suppress(OSError, ValueError), open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), self.file.fileno())


class Cell(Protocol):
    """The place in a notebook where something is shown and can be replaced."""

    def update(self, data: dict[str, str], *, raw: bool) -> None: ...


def open_cell(text: str) -> Cell | None:
    """A line below the cell of the notebook that this process serves; None where there is no notebook."""
    if "ipykernel" not in sys.modules:
        return None
    display = import_module("IPython.display")
    cell: Cell | None = display.display({"text/plain": text}, raw=True, display_id=True)
    return cell


class Quiet:
    """The same, in silence."""

    def __enter__(self) -> Quiet:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def update(self, step: int, loss: float, rate: float, valid: dict[str, float] | None = None) -> None:
        pass

    def message(self, text: str) -> None:
        pass


def short(number: float) -> str:
    """12345 -> 12.3k, in at most five characters."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(number) >= 0.9995 * size:
            return f"{number / size:.3g}{letter}"
    return f"{number:.3g}"


def steady(number: float) -> str:
    """Three decimals, so that a number that moves a little does not move its neighbours."""
    return f"{number:.3f}" if 0.01 <= abs(number) < 1000 or number == 0 else f"{number:.3g}"


def clock(seconds: float) -> str:
    """75 -> 1:15, 3675 -> 1:01:15"""
    minutes, s = divmod(round(seconds), 60)
    hours, m = divmod(minutes, 60)
    return f"{hours}:{m:02d}:{s:02d}" if hours else f"{m}:{s:02d}"


def resident() -> int:
    """Bytes of memory that the process holds now (its peak, where the system tells no more)."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024
