"""Runs as processes, one at a time by default: a queue that outlives the page and the studio.

    waiting -> running -> finished | stopped | failed

A process is started in a session of its own, so it goes on when the studio ends; what waits is started when the studio
is opened again. The queue is a JSON file in the folder of the runs, and what a process prints is a log beside it.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from descend.errors import Mistake
from descend.files import read_json, write_json
from descend.report.history import read_history
from descend.workbench.place import Place

PERIOD = 0.3  # seconds between two looks at the processes
KEPT = 200  # jobs that the queue remembers
TAIL = 4000  # bytes of a log that are shown
ENDED = ("finished", "stopped", "failed")


@dataclass
class Job:
    """A command of descend that makes or continues a run."""

    number: int
    args: list[str]
    run: str
    state: str = "waiting"
    pid: int = 0
    asked: float = 0.0
    said: str = ""

    @property
    def command(self) -> str:
        return shlex.join(["descend", *self.args])


class Queue:
    """The jobs; `width` of them run at once."""

    def __init__(self, place: Place, width: int = 1):
        self.place, self.width = place, width
        self.path, self.lock = place.own / "queue.json", threading.RLock()
        self.jobs: list[Job] = read_jobs(self.path)
        self.children: dict[int, subprocess.Popen[bytes]] = {}
        self.ending = threading.Event()
        self.thread = threading.Thread(target=self.work, name="queue", daemon=True)

    def start(self) -> None:
        self.place.own.mkdir(parents=True, exist_ok=True)
        self.thread.start()

    def close(self) -> None:
        """End the queue; what runs goes on."""
        self.ending.set()
        self.thread.join(timeout=5)

    def add(self, args: list[str], run: str) -> Job:
        """A command to be run when its turn comes."""
        with self.lock:
            if self.find(run) is not None:
                raise Mistake(f"{run} is in the queue already")
            job = Job(1 + max((job.number for job in self.jobs), default=0), args, run, asked=time.time())
            self.jobs = [*self.jobs, job][-KEPT:]
            self.save()
        return job

    def find(self, run: str) -> Job | None:
        """The job of this run that waits or runs."""
        return next((job for job in self.jobs if job.run == run and job.state not in ENDED), None)

    def last(self, run: str) -> Job | None:
        """What was last asked for this run."""
        return next((job for job in reversed(self.jobs) if job.run == run), None)

    def stop(self, run: str) -> str:
        """Ask a run to save and stop, or take it out of the queue; says what was done."""
        with self.lock:
            job = self.find(run)
            if job is not None and job.state == "waiting":
                job.state = "stopped"
                self.save()
                return "taken out of the queue"
            pid = job.pid if job is not None else read_pid(self.place.find_run(run))
            if not pid or not is_ours(pid):
                raise Mistake(f"{run} is not running")
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        return "saves its state and stops"

    def work(self) -> None:
        while not self.ending.wait(PERIOD):
            with self.lock, suppress(OSError):
                self.look()

    def look(self) -> None:
        """See who has ended, and start whose turn it is."""
        changed = False
        for job in self.jobs:
            if job.state == "running" and not self.is_running(job):
                self.conclude(job)
                changed = True
        free = self.width - sum(job.state == "running" for job in self.jobs)
        for job in [job for job in self.jobs if job.state == "waiting"][: max(0, free)]:
            self.begin(job)
            changed = True
        if changed:
            self.save()

    def begin(self, job: Job) -> None:
        with self.log(job).open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "descend", *job.args],
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True,
                cwd=self.place.data, env={**os.environ, "NO_COLOR": "1", "COLUMNS": "120"},
            )  # fmt: skip
        self.children[job.number] = process
        job.pid, job.state = process.pid, "running"

    def is_running(self, job: Job) -> bool:
        child = self.children.get(job.number)
        return child.poll() is None if child is not None else is_ours(job.pid)

    def conclude(self, job: Job) -> None:
        """How it ended: by its exit code, or by its folder, where another studio had started it."""
        child = self.children.pop(job.number, None)
        code = child.returncode if child is not None else None
        stopped = (128 + signal.SIGTERM, 128 + signal.SIGINT, -signal.SIGTERM, -signal.SIGINT, -signal.SIGKILL)
        if code is None:
            try:
                state = read_history(self.place.find_run(job.run)).state
            except Mistake:
                state = "failed"
            job.state = {"finished": "finished", "failed": "failed"}.get(state, "stopped")
        else:
            job.state = "finished" if code == 0 else "stopped" if code in stopped else "failed"
        if job.state == "failed":
            job.said = (self.tail(job).strip().splitlines() or ["it ended without a word"])[-1]

    def log(self, job: Job) -> Path:
        return self.place.own / f"{job.number}.log"

    def tail(self, job: Job) -> str:
        """The end of what the process printed."""
        try:
            with self.log(job).open("rb") as file:
                file.seek(0, os.SEEK_END)
                file.seek(max(0, file.tell() - TAIL))
                return file.read().decode(errors="replace")
        except FileNotFoundError:
            return ""

    def save(self) -> None:
        write_json(self.path, {"jobs": [asdict(job) for job in self.jobs]})


def read_jobs(path: Path) -> list[Job]:
    """The queue as it was left; one that cannot be read is begun anew."""
    if not path.exists():
        return []
    try:
        return [Job(**job) for job in read_json(path)["jobs"]]
    except (Mistake, TypeError, KeyError):
        os.replace(path, path.with_suffix(".damaged"))
        return []


def read_pid(run: Path) -> int:
    """The process that trains in a folder, if one does."""
    if read_history(run).state != "running":
        return 0
    with suppress(OSError, ValueError):
        return int((run / "lock").read_text())
    return 0


def is_ours(pid: int) -> bool:
    """Whether the process lives and is one of descend: numbers of processes are used again."""
    if pid <= 0:
        return False
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        return state != "Z" and any(b"descend" in word for word in words)
    except FileNotFoundError:
        if Path("/proc/self").exists():
            return False
    except OSError:
        return False
    try:  # no /proc: macOS
        os.kill(pid, 0)
    except OSError:
        return False
    return True
