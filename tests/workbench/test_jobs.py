"""The queue: one at a time, kept over restarts of the studio, and runs that go on without it."""

from __future__ import annotations

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from descend.errors import Mistake
from descend.workbench import jobs, lazy
from descend.workbench.jobs import Queue, is_ours
from descend.workbench.place import Place

SLEEP = "import time; descend = 1; time.sleep(60)"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    (tmp_path / "runs" / ".studio").mkdir(parents=True)
    return Place(tmp_path / "runs", tmp_path)


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Processes that sleep in the place of runs."""
    calls: list[list[str]] = []
    real = subprocess.Popen
    made = []

    def start(words: list[str], **given: object) -> subprocess.Popen[bytes]:
        calls.append(words)
        code = SLEEP if "fails" not in words else "import sys; print('descend: no such data'); sys.exit(2)"
        made.append(real([sys.executable, "-c", code], **given))  # type: ignore[call-overload]
        return made[-1]

    monkeypatch.setattr(jobs.subprocess, "Popen", start)
    yield calls  # type: ignore[misc]
    for process in made:
        process.kill()
        process.wait()


def test_one_at_a_time(place: Place, started: list[list[str]]) -> None:
    queue = Queue(place)
    first, second = queue.add(["train", "x"], "a"), queue.add(["train", "y"], "b")
    queue.look()
    queue.look()
    assert (first.state, second.state) == ("running", "waiting")
    assert [words[1:] for words in started] == [["-m", "descend", "train", "x"]]
    with pytest.raises(Mistake, match="in the queue already"):
        queue.add(["train", "z"], "b")
    assert queue.stop("a") == "saves its state and stops"
    queue.children[first.number].wait(timeout=20)
    queue.look()
    assert (first.state, second.state) == ("stopped", "running")


def test_what_waits_can_be_taken_out(place: Place, started: list[list[str]]) -> None:
    queue = Queue(place)
    queue.add(["train", "x"], "a")
    second = queue.add(["train", "y"], "b")
    queue.look()
    assert queue.stop("b") == "taken out of the queue"
    assert second.state == "stopped"
    assert len(started) == 1


def test_the_queue_outlives_the_studio(place: Place, started: list[list[str]]) -> None:
    before = Queue(place)
    before.add(["train", "x"], "a")
    before.add(["train", "y"], "b")
    before.look()
    after = Queue(place)
    after.look()
    assert [job.state for job in after.jobs] == ["running", "waiting"]
    assert after.jobs[0].pid == before.jobs[0].pid
    assert len(started) == 1
    before.children[1].kill()
    before.children[1].wait()
    after.look()
    assert [job.state for job in after.jobs] == ["failed", "running"]  # it left no run behind


def test_a_command_that_fails_says_why(place: Place, started: list[list[str]]) -> None:
    queue = Queue(place)
    job = queue.add(["train", "fails"], "a")
    queue.look()
    queue.children[job.number].wait(timeout=20)
    queue.look()
    assert job.state == "failed"
    assert job.said == "descend: no such data"


def test_a_damaged_queue_is_begun_anew(place: Place) -> None:
    (place.own / "queue.json").write_text("{")
    assert Queue(place).jobs == []
    assert (place.own / "queue.damaged").exists()


def test_numbers_of_other_processes_are_not_ours() -> None:
    other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(30)"])
    ours = subprocess.Popen([sys.executable, "-c", SLEEP])
    time.sleep(0.2)
    assert not is_ours(other.pid)
    assert is_ours(ours.pid)
    for process in (other, ours):
        process.kill()
        process.wait()
    assert not is_ours(ours.pid)
    assert not is_ours(0)


def test_nothing_to_stop(place: Place) -> None:
    with pytest.raises(Mistake, match="no run"):
        Queue(place).stop("a")


def test_modules_are_brought_one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two threads that import at once could see each other's half-made modules."""
    inside: list[str] = []
    most = 0

    def import_slowly(name: str) -> str:
        nonlocal most
        inside.append(name)
        most = max(most, len(inside))
        time.sleep(0.02)
        inside.remove(name)
        return name

    monkeypatch.setattr(lazy, "import_module", import_slowly)
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lazy.bring, "abcd")) == [f"descend.workbench.{name}" for name in "abcd"]
    assert most == 1
