"""What the trainer costs: `fit` against the shortest loop by hand; and how long imports and --help take."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch
import torch.nn.functional as F

from benchmarks.turns import take_turns

STEPS = 40


def recipe() -> object:
    from descend import recipes

    found = recipes.get("gpt2-pydoc")
    return replace(found, loop=replace(found.loop, steps=STEPS, eval_every=10**9, save_every=10**9, clip=0.0))


def fitted() -> Callable[[], object]:
    """The engine's loop with logs and display, without evaluation and checkpoints (which the other does not do)."""
    from descend.engine import fit as engine
    from descend.engine.distributed import World
    from descend.engine.progress import Progress
    from descend.engine.run import Run
    from descend.engine.signals import Request
    from descend.engine.training import Training

    found = recipe()
    parts = found.build()  # type: ignore[attr-defined]
    parts.valid, engine.save = [], lambda *_: None  # type: ignore[assignment]

    def run() -> None:
        training = Training(parts, found.loop, found.schedule, World())  # type: ignore[attr-defined]
        training.evaluate = lambda: {"loss": 0.0}  # type: ignore[method-assign]
        with tempfile.TemporaryDirectory() as folder, Progress("bench", STEPS, file=open("/dev/null", "w")) as display:
            log = Run.create(Path(folder) / "run", {})
            engine._loop(training, log, display, Request(), 0.0, None)
            log.close()

    return run


def bare() -> Callable[[], object]:
    """The same model, data, optimizer and schedule in the fewest lines."""
    found = recipe()
    parts = found.build()  # type: ignore[attr-defined]
    from descend.engine.hardware import keep_memory

    keep_memory()

    def run() -> None:
        model, stream = parts.model.train(), parts.stream
        optimizer = found.optim.build(model)  # type: ignore[attr-defined]
        for step in range(STEPS):
            for group in optimizer.param_groups:
                group["lr"] = 1e-3 * found.schedule(step, STEPS)  # type: ignore[attr-defined]
            batch = next(stream)
            optimizer.zero_grad(set_to_none=True)
            loss = F.cross_entropy(model(batch["x"]).flatten(0, 1), batch["y"].flatten())
            loss.backward()
            optimizer.step()
            loss.item()

    return run


IMPORT = "import time, torch; began = time.perf_counter(); import descend; print(time.perf_counter() - began)"


def seconds(code: list[str], repeats: int = 7) -> float:
    """The best wall time of a command."""
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        subprocess.run(code, check=True, capture_output=True)
        times.append(time.perf_counter() - began)
    return min(times)


def measure(rounds: int = 3) -> list[dict[str, object]]:
    times, _ = take_turns({n: f"benchmarks.overhead:{n}" for n in ("fitted", "bare")}, rounds, 1)
    ours, theirs = STEPS / min(times["fitted"]), STEPS / min(times["bare"])
    python, cli = sys.executable, str(Path(sys.executable).with_name("descend"))
    imported = min(float(subprocess.check_output([python, "-c", IMPORT])) for _ in range(5))
    help_page = seconds([cli, "--help"])
    return [
        {"name": "fit against a bare loop", "ours": ours, "theirs": theirs, "unit": "steps/s", "ratio": ours / theirs,
         "bar": 0.97, "note": "the gpt2-pydoc recipe; logging and display on"},
        {"name": "import descend, after torch", "ours": imported, "theirs": 0.3, "unit": "s",
         "ratio": 0.3 / imported, "bar": 1.0, "note": "bar: 0.3 s"},
        {"name": "descend --help", "ours": help_page, "theirs": 0.5, "unit": "s", "ratio": 0.5 / help_page,
         "bar": 1.0, "note": "bar: 0.5 s"},
    ]  # fmt: skip


if __name__ == "__main__":
    torch.set_num_threads(2)
    for row in measure():
        print(row)
