"""Processes that load data: a signal to the group is not for them, they end with their process, and they tell why."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
import torch
from torch import Tensor

from descend.data.images.stream import Ahead
from descend.data.streams.arrays import Shuffled
from descend.errors import Mistake

FORK = multiprocessing.get_context("fork")
Batch = dict[str, Tensor]


def stream(load: Callable[[Batch], Batch]) -> Ahead:
    return Ahead(Shuffled({"x": torch.arange(64)}, 4), load, workers=1)  # type: ignore[arg-type]


def worker_of(process: int) -> int:
    """The process that loads for another one."""
    found = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    return int(found[-1])


def is_running(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().split()[2] != "Z"
    except OSError:
        return False


def load_on(pipe: Connection) -> None:
    """In a group of its own: note SIGTERM as a run does, load a batch, tell, wait for a word, and load on."""
    os.setsid()
    noted: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, frame: noted.append(number))
    batches = stream(lambda batch: batch)
    next(batches)
    pipe.send(worker_of(os.getpid()))
    pipe.recv()
    for _ in range(8):  # more than were loaded ahead
        next(batches)
    pipe.send(len(noted))


def start() -> tuple[multiprocessing.process.BaseProcess, Connection, int]:
    here, there = FORK.Pipe()
    process = FORK.Process(target=load_on, args=(there,), daemon=False)
    process.start()
    assert here.poll(60)
    return process, here, here.recv()


def test_a_signal_to_the_group_stops_no_worker() -> None:
    process, pipe, worker = start()
    os.killpg(process.pid or 0, signal.SIGTERM)
    time.sleep(0.1)
    pipe.send("go on")
    assert pipe.poll(60)
    assert pipe.recv() == 1
    process.join(60)
    assert process.exitcode == 0
    assert not is_running(worker)


def test_a_worker_ends_with_its_process() -> None:
    process, _, worker = start()
    os.kill(process.pid or 0, signal.SIGKILL)
    process.join()
    begun = time.monotonic()
    while is_running(worker):
        assert time.monotonic() - begun < 4, "torch's own workers look after 5 seconds"
        time.sleep(0.01)


@pytest.mark.parametrize("error", [Mistake("a.png: not an image"), PermissionError(13, "denied", "a.png")])
def test_what_is_wrong_with_a_file_is_told_as_it_is(error: Exception) -> None:
    def fail(batch: Batch) -> Batch:
        raise error

    with pytest.raises(type(error)) as caught:
        next(stream(fail))
    assert str(caught.value) == str(error)
