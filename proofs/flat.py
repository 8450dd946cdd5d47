"""python -m proofs.flat: memory, open files and threads do not grow over 5,000 steps with 100 checkpoints.

The first fifth of a run fills what is kept (the allocator's pages, copies for saving); after it, the least of the last
samples must not be above that of the first ones: by no file, no thread, and at most 4 MB. Nothing is sampled while a
checkpoint is written, which has a thread and files of its own.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import threading
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch

from descend.engine.progress import resident
from descend.verbs.start import run_recipe
from proofs.reliability import record
from tests.faults.points import tiny

SAMPLES = 100
WINDOW = 15  # samples of which the least counts
MEMORY = 4 * 2**20


@dataclass
class Samples:
    """A display that looks at its own process now and then."""

    every: int
    taken: list[dict[str, int]] = field(default_factory=list)

    def update(self, step: int, loss: float, rate: float, valid: dict[str, float] | None = None) -> None:
        writing = any(thread.name == "checkpoint" for thread in threading.enumerate())
        if valid is None and step % self.every == self.every // 2 and not writing:
            self.taken.append(
                {
                    "memory": resident(),
                    "files": len(os.listdir("/proc/self/fd")),
                    "threads": threading.active_count(),
                    "kernel threads": len(os.listdir("/proc/self/task")),
                }
            )

    def message(self, text: str) -> None:
        pass


def find_growth(taken: list[dict[str, int]]) -> dict[str, int]:
    """What has grown after the first fifth, and by how much."""
    settled = taken[len(taken) // 5 :]
    grown = {}
    for name in taken[0]:
        values = [sample[name] for sample in settled]
        by = min(values[-WINDOW:]) - min(values[:WINDOW])
        if by > (MEMORY if name == "memory" else 0):
            grown[name] = by
    return grown


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m proofs.flat", description=__doc__)
    parser.add_argument("--steps", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.set_num_threads(1)
    recipe, samples = tiny(options.seed), Samples(max(1, options.steps // SAMPLES))
    every = max(50, options.steps // 100)
    loop = replace(recipe.loop, steps=options.steps, eval_every=10 * every, save_every=every)
    with tempfile.TemporaryDirectory(prefix="flat-") as place:
        run_recipe("tiny", replace(recipe, loop=loop), Path(place) / "run", display=samples)
    grown = find_growth(samples.taken)
    for name, by in grown.items():
        print(f"{name} grew by {by:,}")
    told = {"steps": options.steps, "samples": len(samples.taken), "growing": len(grown)}
    told["megabytes"] = samples.taken[-1]["memory"] // 2**20
    return 0 if record("flat", told, options.seed) else 1


if __name__ == "__main__":
    sys.exit(main())
