"""python -m proofs.world [recipes ..]: every recipe in two processes, as copies and as shards, saved, resumed, equal.

Each recipe is made tiny and trained for three steps by its command line, once alone and once in each way of two
processes. Then the last checkpoint is taken away and the run resumed: weights, state and metrics must be those of the
run that was not. Losses and scores must be those of one process, except where chance is drawn, or statistics are taken,
for each part of a batch. Two commands go through torchrun itself. A recipe that cannot be spread says so in one line.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from descend import recipes
from descend.engine.distributed import join
from descend.engine.run import Run
from descend.kinds.recipe import Recipe
from descend.verbs.flags import parse
from descend.verbs.train import TrainFlags
from proofs.journal import Journal
from proofs.reliability import record
from proofs.tiny import shrink_flags, write_files
from proofs.verbs import call
from tests.faults.points import compare, describe_run
from tests.pair import run_pair
from tests.tasks.cases import RANDOM

STEPS = 3
LONGEST = 300  # seconds of one case
CLOSE = 1e-3  # of a loss in float32 after steps of Adam, which magnify rounding where a gradient is almost 0
MODES = ("ddp", "fsdp")
THROUGH_TORCHRUN = {"clip-scenes": "ddp", "gpt2-pydoc": "fsdp"}
PART = 8  # recipes that are tried together, and not again after an interruption


def flags_of(name: str, files: Path, mode: str, seed: int) -> list[str]:
    """A tiny run of three steps."""
    loop = {"--steps": STEPS, "--parallel": mode, "--seed": seed}
    return [*shrink_flags(name, files), *(str(word) for pair in loop.items() for word in pair)]


def try_recipe(name: str, flags: list[str], folder: Path) -> dict[str, Any]:
    """Train, take the last checkpoint away, resume; how it went, in this process or as one of two."""
    world = join()
    done = call(["train", name, *flags, "--quiet", "--out", str(folder)])
    told: dict[str, Any] = {"recipe": name, "code": done.code, "said": done.said if done.code else "", "different": ""}
    if done.fault or done.code:
        return told | {"fault": done.fault or (done.said if "another one has gone" in done.said else "")}
    world.wait()
    expected = describe_run(folder) if world.first else {}
    if world.first:
        shutil.rmtree(folder / "checkpoints" / f"step-{STEPS:06d}")
    world.wait()
    again = call(["resume", str(folder), "--quiet"])
    world.wait()
    told |= {"fault": again.fault or (again.said if again.code else "")}
    return told | {"different": compare(folder, expected) if world.first else ""}


def main(args: list[str]) -> None:
    """What each of the two processes does: the recipes in one mode; the first one writes a line for each."""
    torch.set_num_threads(1)
    place, mode, seed, names = Path(args[0]), args[1], int(args[2]), args[3:]
    world = join()
    for name in names:
        signal.alarm(LONGEST)
        told = try_recipe(name, flags_of(name, place / "files", mode, seed), place / mode / name)
        if told["fault"]:
            print(told["fault"], file=sys.stderr, flush=True)
            os._exit(1)  # the other one may wait for ever
        if world.first:
            with (place / f"{mode}.jsonl").open("a") as file:
                file.write(json.dumps(told) + "\n")


def try_mode(place: Path, mode: str, seed: int, names: list[str]) -> dict[str, dict[str, Any]]:
    """Every recipe in two processes; they are started again after one that failed or hung."""
    found: dict[str, dict[str, Any]] = {}
    path = place / f"{mode}.jsonl"
    while left := [name for name in names if name not in found]:
        done = run_pair("proofs.world", str(place), mode, str(seed), *left, timeout=LONGEST * len(left))
        lines = path.read_text().splitlines() if path.exists() else []
        found |= {told["recipe"]: told for told in map(json.loads, lines)}
        if done.returncode:
            failed = next(name for name in left if name not in found)
            found[failed] = {"fault": done.stderr.strip()[-500:] or f"exit code {done.returncode}"}
    return found


def draws_chance(name: str, flags: list[str]) -> str:
    """Why the steps depend on how a batch is split; or nothing."""
    asked: TrainFlags = parse(TrainFlags, flags, name, default=TrainFlags(recipes.get(name)))
    recipe: Recipe = asked.recipe
    parts = recipe.build()
    if type(parts.task).__name__ in RANDOM:
        return RANDOM[type(parts.task).__name__]
    if any(isinstance(m, _BatchNorm) for m in parts.task.modules()):
        return "batch statistics"
    if any(isinstance(m, nn.Dropout) and m.p > 0 for m in parts.task.modules()):
        return "dropout"
    return ""


def read_scores(folder: Path) -> list[tuple[str, float]]:
    """Every loss and score of a run."""
    lines = [line | {f"valid {k}": v for k, v in line.get("valid", {}).items()} for line in Run(folder).lines()]
    chosen = [(key, line[key]) for line in lines for key in line if key == "loss" or key.startswith("valid ")]
    return [(key, value) for key, value in chosen if isinstance(value, float)]


def find_difference(one: Path, two: Path) -> str:
    """The loss or score that is not the same; or nothing."""
    alone, spread = read_scores(one), read_scores(two)
    if [key for key, _ in alone] != [key for key, _ in spread]:
        return "other lines"
    worst = [f"{k} {a:.6g} {b:.6g}" for (k, a), (_, b) in zip(alone, spread, strict=True) if not is_close(a, b)]
    return ", ".join(worst[:3])


def is_close(a: float, b: float) -> bool:
    return abs(a - b) <= CLOSE * max(abs(a), abs(b), 1e-3) or (a != a and b != b)


def try_torchrun(name: str, place: Path, mode: str, seed: int) -> str:
    """The command as a user gives it; what went wrong, or nothing."""
    launch = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--standalone", "-m", "descend"]
    flags = [*flags_of(name, place / "files", mode, seed), "--out", str(place / "torchrun" / name), "--quiet"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    for args in (["train", name, *flags], ["resume", str(place / "torchrun" / name), "--quiet"]):
        done = subprocess.run([*launch, *args], env=environment, capture_output=True, text=True, timeout=LONGEST)
        if done.returncode or "Traceback" in done.stderr:
            return done.stderr.strip()[-500:]
    return find_difference(place / mode / name, place / "torchrun" / name)


def judge(names: list[str], place: Path, seed: int) -> Counter[str]:
    """Every recipe in every mode; faults are printed as they are found."""
    kinds = ("cases", "recipes", "resumed equal", "as one process", "drawn by part", "refused", "different", "failed")
    counts = Counter(dict.fromkeys(kinds, 0))
    counts["recipes"] = len(names)
    spread = {mode: try_mode(place, mode, seed, names) for mode in MODES}
    for name in names:
        flags = flags_of(name, place / "files", "ddp", seed)
        reason = draws_chance(name, flags)
        alone = call(["train", name, *flags, "--quiet", "--out", str(place / "alone" / name)])
        for mode in MODES:
            told = spread[mode][name] | {"alone": alone.fault}
            other = find_difference(place / "alone" / name, place / mode / name) if not told.get("code", 1) else ""
            kind, said = judge_case(told, reason, other)
            counts.update([kind, "cases", *(["resumed equal"] if kind in ("as one process", "drawn by part") else [])])
            print(f"{name} {mode}: {kind} {said}", flush=True)
    for name in sorted(set(names) & set(THROUGH_TORCHRUN)):
        mode = THROUGH_TORCHRUN[name]
        wrong = try_torchrun(name, place, mode, seed)
        counts.update(["through torchrun", *(["failed"] if wrong else [])])
        print(f"{name} {mode} through torchrun: {wrong or 'done'}", flush=True)
    return counts


def judge_case(told: dict[str, Any], reason: str, other: str) -> tuple[str, str]:
    """What a case counts as, and why."""
    if fault := told.get("fault") or told["alone"]:
        return "failed", fault
    if told["code"]:
        return "refused", told["said"]
    if told["different"] or (other and not reason):
        return "different", told["different"] or other
    return ("drawn by part", reason) if reason else ("as one process", "")


def prove() -> int:
    parser = argparse.ArgumentParser(prog="python -m proofs.world", description=__doc__)
    parser.add_argument("recipes", nargs="*", help="which recipes; all by default")
    parser.add_argument("--seed", type=int, default=0, help="the runs' own")
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.recipes:  # a part is shown, not recorded
        counts = judge_aside(options.recipes, options.seed)
        print(dict(counts))
        return min(1, counts["different"] + counts["failed"])
    names, journal = recipes.names(), Journal("world", options.seed)
    parts = {names[start]: names[start : start + PART] for start in range(0, len(names), PART)}
    for part in journal.left(parts):
        journal.add(part, judge_aside(parts[part], options.seed))
    held = record("world", journal.total(), options.seed)
    journal.close()
    return 0 if held else 1


def judge_aside(names: list[str], seed: int) -> Counter[str]:
    """Some recipes, in a folder that is then removed."""
    with tempfile.TemporaryDirectory(prefix="world-") as place:
        write_files(Path(place) / "files")
        return judge(names, Path(place), seed)


if __name__ == "__main__":
    sys.exit(prove())
