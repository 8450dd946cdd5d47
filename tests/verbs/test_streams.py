"""Output that nobody takes, signals, and the machine's limits: an exit code and at most one line, never a traceback."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from descend import cli
from descend.engine.fit import fit
from descend.engine.progress import Progress, Quiet
from descend.engine.run import Run
from tests.engine.small import small

COMMAND = f"{sys.executable} -m descend --help"


@pytest.mark.parametrize(
    ("redirection", "code", "lines"),
    [(">&-", 0, 0), (">&- 2>&-", 0, 0), ("<&- >&-", 0, 0), (">/dev/full", 2, 1)],
)
def test_closed_and_full_outputs(redirection: str, code: int, lines: int) -> None:
    done = subprocess.run(f"{COMMAND} {redirection}", shell=True, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr.count("\n")) == (code, lines), done.stderr
    assert ("the output cannot be written: no space left" in done.stderr) == bool(lines)


def test_a_reader_that_has_gone() -> None:
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(COMMAND.split(), stdout=write, stderr=subprocess.PIPE, text=True)
    os.close(write)
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (MemoryError(), "descend: out of memory; lower --batch"),
        (OSError(28, "No space left on device", "a/b"), "descend: a/b: no space left on device; free space"),
        (RuntimeError("DataLoader worker (pid 7) is killed by signal: Killed."), "descend: a process that loads data"),
    ],
)
def test_a_limit_is_one_line(
    error: Exception, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(args: list[str]) -> int:
        raise error

    monkeypatch.setattr(cli, "dispatch", fail)
    assert cli.main([]) == 2
    shown = capsys.readouterr().err
    assert shown.startswith(said)
    assert shown.count("\n") == 1


def test_a_mistake_of_ours_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(args: list[str]) -> int:
        raise RuntimeError("the sizes differ")

    monkeypatch.setattr(cli, "dispatch", fail)
    with pytest.raises(RuntimeError, match="the sizes differ"):
        cli.main([])


def test_progress_goes_on_when_nobody_reads() -> None:
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as file, Progress("small", 2, file=file) as shown:
        shown.update(1, 1.0, 1.0, valid={"loss": 1.0})
        shown.message("hello")


def test_a_terminal_that_hangs_up_saves_first(tmp_path: Path) -> None:
    recipe = small(tmp_path, steps=2000, eval_every=1000, save_every=1000)
    run = Run.create(tmp_path / "run", {"name": "small"})
    timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGHUP))
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)  # the suite itself may run under nohup
    try:
        timer.start()
        result = fit(recipe.build(), recipe.loop, recipe.schedule, run, Quiet())
        timer.join()
    finally:
        signal.signal(signal.SIGHUP, before)
    assert result.reason == "SIGHUP"
    assert (run.checkpoints / "last").resolve().name == f"step-{result.step:06d}"


def test_under_nohup_a_run_goes_on(tmp_path: Path) -> None:
    recipe = small(tmp_path, steps=12)
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        os.kill(os.getpid(), signal.SIGHUP)
        run = Run.create(tmp_path / "run", {"name": "small"})
        assert fit(recipe.build(), recipe.loop, recipe.schedule, run, Quiet()).reason == "finished"
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_second_signal_ends_at_once(tmp_path: Path) -> None:
    recipe = small(tmp_path, steps=10**6, eval_every=10**6, save_every=10**6)
    run = Run.create(tmp_path / "run", {"name": "small"})
    slow = lambda step, steps: time.sleep(1.0) or 1.0  # a step takes a second

    def interrupt() -> None:
        for _ in range(2):
            time.sleep(0.2)
            os.kill(os.getpid(), signal.SIGINT)

    sender = threading.Thread(target=interrupt)
    sender.start()
    with pytest.raises(KeyboardInterrupt):
        fit(recipe.build(), recipe.loop, slow, run, Quiet())
    sender.join()


def test_out_is_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "taken").write_text("mine")
    assert cli.main(["train", "mlp-wine", "--out", str(tmp_path / "taken")]) == 2
    assert f"--out {tmp_path / 'taken'}" in capsys.readouterr().err
    assert (tmp_path / "taken").read_text() == "mine"
