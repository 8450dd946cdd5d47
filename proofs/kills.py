"""python -m proofs.kills [recipes ..]: every recipe, killed at random moments and resumed, equal to the bit.

Each recipe is made tiny and trained once without a disturbance, which takes T seconds. Then a process trains or resumes
it and is killed (SIGKILL) at a moment drawn from 0..T, `--times` in all; what is killed in between is resumed until it
ends. Weights, state, files beside them and metrics must be those of the undisturbed run.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from descend import recipes
from descend.kinds.recipe import Recipe
from descend.verbs.flags import parse
from descend.verbs.resume import resume
from descend.verbs.train import TrainFlags, start_run
from proofs.journal import Journal
from proofs.reliability import record
from proofs.tiny import shrink_flags, write_files
from tests.faults.points import compare, describe_run, run_command

TIMES = 5
STEPS = {"steps": 7, "eval_every": 3, "save_every": 2}


def make_tiny(name: str, files: Path) -> Recipe:
    """The recipe, small enough for a run of a second, with a few evaluations and checkpoints."""
    flags: TrainFlags = parse(
        TrainFlags, shrink_flags(name, files), f"descend train {name}", default=TrainFlags(recipes.get(name))
    )
    recipe: Any = flags.recipe
    return replace(recipe, loop=replace(recipe.loop, **STEPS))


def attempt(name: str, recipe: Recipe, folder: Path, log: Path) -> int:
    """Start a process that trains, or resumes where there is something to resume; returns its number."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(handle, 1)
        os.dup2(handle, 2)
        if (folder / "recipe.json").exists():
            code = run_command(lambda: resume(folder, quiet=True))
        else:
            code = run_command(lambda: start_run(name, TrainFlags(recipe, str(folder), quiet=True), ()))
    finally:
        sys.stderr.flush()
        os._exit(code)


def storm(name: str, recipe: Recipe, folder: Path, times: int, chance: random.Random) -> tuple[int, int, list[str]]:
    """Kill a recipe's runs `times` times; returns the kills, the runs that ended, and what was wrong."""
    torch.set_num_threads(1)
    start_run(
        name, TrainFlags(recipe, str(folder / "warm"), quiet=True), ()
    )  # imports stay for the processes that are forked
    log, wrong, began = folder / "log", [], time.perf_counter()
    os.waitpid(attempt(name, recipe, folder / "whole", log), 0)
    length, expected = time.perf_counter() - began, describe_run(folder / "whole")
    kills = ended = 0
    while kills < times or not ended or (folder / f"killed-{ended}").exists():
        child = attempt(name, recipe, folder / f"killed-{ended}", log)
        if kills < times:
            time.sleep(chance.uniform(0, length))
            os.kill(child, signal.SIGKILL)  # a process that has just ended is still there until it is waited for
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if code == -signal.SIGKILL:
            kills += 1
            continue
        different = (
            compare(folder / f"killed-{ended}", expected) if code == 0 else f"ended with {code}: {log.read_text()}"
        )
        wrong += [f"{name}: {different}"] if different else []
        ended += 1
    return kills, ended, wrong


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m proofs.kills", description=__doc__)
    parser.add_argument("recipes", nargs="*", help="which recipes; all by default")
    parser.add_argument("--times", type=int, default=TIMES, help="kills of each recipe")
    parser.add_argument("--seed", type=int, default=0, help="chooses the moments")
    options = parser.parse_args()
    journal = None if options.recipes else Journal("kills", options.seed, str(options.times))
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="kills-") as place:
        files = write_files(Path(place) / "files")
        for name in journal.left(recipes.names()) if journal else options.recipes:
            folder = Path(place) / name
            folder.mkdir()
            chance = random.Random(f"{options.seed} {name}")
            kills, ended, wrong = storm(name, make_tiny(name, files), folder, options.times, chance)
            equal = ended - len(wrong)
            found = {"kills": kills, "recipes": 1, "runs": ended, "equal": equal, "different": len(wrong)}
            journal.add(name, found) if journal else counts.update(found)
            print(f"{name}: {kills} kills, {ended - len(wrong)} of {ended} runs equal", *wrong, sep="\n", flush=True)
            shutil.rmtree(folder)
    if journal is None:  # a part is shown, not recorded
        print(dict(counts))
        return min(1, counts["different"])
    held = record("kills", journal.total(), options.seed)
    journal.close()
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
