from __future__ import annotations

import io
import mmap
import sys
import time
from types import ModuleType

import pytest

from descend.engine import progress
from descend.engine.progress import Progress, Quiet, clock, resident, short, steady
from tests.close import close

NAN = float("nan")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    return Terminal()


def test_a_pipe_gets_plain_lines() -> None:
    file = io.StringIO()
    with Progress("gpt2", 20, unit="tokens", file=file) as shown:
        for step in range(1, 21):
            shown.update(step, loss=2.0, rate=12_345.0)
            if step % 10 == 0:
                shown.update(step, loss=2.0, rate=12_345.0, valid={"loss": 3 - step / 10})
                shown.message(f"saved step-{step:06d} [red]")
    lines = file.getvalue().splitlines()
    assert lines[0] == "gpt2: 20 steps"
    assert lines[2] == "saved step-000010 [red]"
    assert lines[1].startswith("gpt2 10/20  loss 2.000  0:00 < 0:00  best 2.000  12.3k tokens/s  ")
    assert lines[3].startswith("gpt2 20/20  loss 2.000  0:00  best 1.000  12.3k tokens/s  ")
    assert len(lines) == 5  # a line for each evaluation and message, none for the other steps
    assert not {"\x1b", "\r"} & set(file.getvalue())


def test_a_pipe_hears_every_ten_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    file = io.StringIO()
    with Progress("gpt2", 100, file=file) as shown:
        for step in range(1, 41):
            now[0] += 1.0
            shown.update(step, loss=1.0, rate=1.0)
    lines = file.getvalue().splitlines()
    assert [line.split()[1] for line in lines[1:]] == ["10/100", "20/100", "30/100", "40/100"]
    assert "0:40 < 1:00" in lines[-1]  # a second a step, 60 steps left


def test_time_left_counts_from_where_a_resumed_run_began(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    file = io.StringIO()
    with Progress("gpt2", 1000, file=file) as shown:
        for step in range(901, 921):
            now[0] += 1.0
            shown.update(step, loss=1.0, rate=1.0)
    assert "0:20 < 1:20" in file.getvalue().splitlines()[-1]


def test_a_terminal_gets_one_live_line(terminal: Terminal) -> None:
    with Progress("gpt2", 5, watch="max accuracy", file=terminal) as shown:
        for step in range(1, 6):
            shown.update(step, loss=1.0, rate=10.0, valid={"accuracy": 1 - step / 10})
        shown.message("saved step-000005 [red]")
    text = terminal.getvalue()
    assert "best accuracy 0.900" in text  # the first was the best
    assert "saved step-000005 [red]" in text
    assert "5/5" in text
    assert "━" in text


@pytest.mark.parametrize("width", [24, 40, 60, 80, 200])
def test_the_line_fits(width: int, terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    from rich.console import Console

    monkeypatch.setenv("COLUMNS", str(width))
    with Progress("gpt2-pydoc", 600, unit="tokens", file=terminal) as shown:
        shown.update(120, loss=3.2, rate=12_345.0)
        shown.update(120, loss=3.2, rate=12_345.0, valid={"loss": 3.0})
        console = Console(file=io.StringIO(), width=width, height=20, color_system=None, force_terminal=True)
        console.print(shown.line())
    (line,) = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert len(line) <= width
    assert "120/600" in line or width < 40
    assert ("loss 3.200" in line) == (width >= 40)
    assert ("MB" in line) == (width > 80)


def test_drawing_is_rare(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    now, drawn = [0.0], []
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    shown = Progress("gpt2", 10_000, file=terminal)
    monkeypatch.setattr(Progress, "draw", lambda self: (drawn.append(self.step), setattr(self, "drawn", now[0])))
    with shown:
        for step in range(1, 1001):
            now[0] += 0.001
            shown.update(step, loss=1.0, rate=1.0)
    assert 8 <= len(drawn) <= 12  # one second


def test_a_step_costs_next_to_nothing() -> None:
    shown = Progress("gpt2", 10**6, file=io.StringIO())
    with shown:
        best = float("inf")
        for _ in range(5):
            began = time.perf_counter()
            for step in range(2000):
                shown.update(step, loss=1.0, rate=1.0)
            best = min(best, (time.perf_counter() - began) / 2000)
    assert best < 5e-6


def test_the_loss_is_smoothed_without_a_bias() -> None:
    shown = Progress("gpt2", 10, file=io.StringIO())
    shown.update(1, loss=7.0, rate=1.0)
    close(shown.sum / shown.weight, 7.0)
    for step in range(2, 300):
        shown.update(step, loss=3.0 + (-1) ** step, rate=1.0)
    assert abs(shown.sum / shown.weight - 3.0) < 0.1


def test_quiet_is_silent(capsys: pytest.CaptureFixture[str]) -> None:
    with Quiet() as shown:
        shown.update(1, loss=1.0, rate=1.0, valid={"loss": 1.0})
        shown.message("hello")
    assert capsys.readouterr() == ("", "")


def test_numbers_for_people() -> None:
    assert [short(x) for x in (0, 7.25, 999.4, 999.6, 12_345, 2_500_000, 3e9)] == [
        "0",
        "7.25",
        "999",
        "1k",
        "12.3k",
        "2.5M",
        "3G",
    ]
    assert [clock(x) for x in (0, 59.6, 75, 3675)] == ["0:00", "1:00", "1:15", "1:01:15"]
    assert [steady(x) for x in (3.14159, 0.0001, 12_345.0, 0.0)] == ["3.142", "0.0001", "1.23e+04", "0.000"]


def test_memory_is_that_of_this_process() -> None:
    before = resident()
    with mmap.mmap(-1, 80 * 2**20) as held:  # new pages; an allocator may hand out old ones
        held.write(b"x" * len(held))
        assert 60 * 2**20 < resident() - before < 160 * 2**20
    assert 10 * 2**20 < before < 100 * 2**30


@pytest.mark.parametrize(("watch", "best"), [("min loss", 1.0), ("max loss", 3.0)])
@pytest.mark.parametrize("scores", [[NAN, 1.0, 3.0], [1.0, NAN, 3.0], [3.0, 1.0, NAN], [NAN, 3.0, NAN, 1.0]])
def test_nan_is_worse_than_any_number(scores: list[float], watch: str, best: float) -> None:
    with Progress("gpt2", 9, watch=watch, file=io.StringIO()) as shown:
        for step, value in enumerate(scores, 1):
            shown.update(step, loss=1.0, rate=1.0, valid={"loss": value})
    assert shown.best == best


def test_many_evaluations_do_not_flood_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    file = io.StringIO()
    with Progress("gpt2", 1000, file=file) as shown:
        for step in range(1, 1001):
            now[0] += 0.01
            shown.update(step, loss=1.0, rate=1.0, valid={"loss": 1.0})
    lines = file.getvalue().splitlines()
    assert len(lines) < 40
    assert "gpt2 1000/1000" in lines[-1]


def test_a_notebook_gets_one_line_that_is_replaced(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shown: list[str] = []

    class Handle:
        def update(self, data: dict[str, str], *, raw: bool) -> None:
            shown.append(data["text/plain"])

    def display(data: dict[str, str], *, raw: bool, display_id: bool) -> Handle:
        shown.append(data["text/plain"])
        return Handle()

    notebook = ModuleType("IPython.display")
    vars(notebook)["display"] = display
    for name, module in (("ipykernel", ModuleType("ipykernel")), ("IPython.display", notebook)):
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setitem(sys.modules, "IPython", ModuleType("IPython"))
    with Progress("gpt2", 10) as line:
        for step in range(1, 11):
            line.update(step, loss=1.0, rate=1.0)
    assert shown[0] == "gpt2: 10 steps"
    assert shown[-1].startswith("gpt2 10/10  loss 1.000")
    assert capsys.readouterr().err == ""
