"""What each of two processes does in test_lone_process: something happens to one of them only."""

from __future__ import annotations

import errno
import os
import signal
import time
from multiprocessing import active_children
from pathlib import Path

import torch

from descend.cli import main as call
from descend.engine import checkpoint
from descend.engine.distributed import join
from descend.engine.training import Training

LOOP = ["--steps", "4", "--save-every", "2", "--eval-every", "2", "--threads", "1", "--quiet"]
STOP = 3


def main(args: list[str]) -> int:
    """Play a scene in a folder."""
    torch.set_num_threads(1)
    scene, folder, rank = args[0], Path(args[1]), int(os.environ["RANK"])
    if scene == "data":  # the second process finds another table
        bad = folder / "bad.csv"
        bad.write_text("a,target\n1\n")
        given = ["--data.path", str(bad)] if rank else []
        return call(["train", "mlp-csv", *given, *LOOP, "--out", str(folder / "run")])
    if scene == "disk":  # the first one, which writes, has no room left
        checkpoint.save = refuse  # type: ignore[assignment]
        return call(["train", "mlp-moons", *LOOP, "--out", str(folder / "run")])
    if scene == "late":  # a script that trains more than once: they have met, and the second one is behind
        join()
        time.sleep(2 * rank)
        return call(["train", "mlp-moons", *LOOP, "--out", str(folder / "run")])
    if scene == "shards":  # beside shards there are whole running statistics; a cached decoder goes around forward
        given = ["--parallel", "fsdp", *LOOP, "--steps", "2", "--batch", "8"]
        averaged = call(["train", "resnet-digits", "--ema", "0.9", *given, "--out", str(folder / "averaged")])
        return averaged or call(["train", "t5-tasks", *given, "--data.path", args[2], "--out", str(folder / "answers")])
    return stop_at_signal(folder, rank)


def refuse(*args: object) -> Path:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "model.safetensors")


def stop_at_signal(folder: Path, rank: int) -> int:
    """Train with data workers; the signal comes in the middle of a step, as a cluster sends it: to the workers too."""
    advance = Training.advance

    def advance_then_stop(training: Training) -> dict[str, float]:
        found = advance(training)
        if rank and training.step == STOP:
            for process in (*(child.pid for child in active_children()), os.getpid()):
                os.kill(process or 0, signal.SIGTERM)
        return found

    Training.advance = advance_then_stop  # type: ignore[method-assign]
    given = ["--data.path", str(folder / "images"), "--data.workers", "1", "--data.size", "16", "--batch", "4"]
    return call(["train", "cnn-images", *given, *LOOP, "--steps", "20", "--out", str(folder / "run")])
