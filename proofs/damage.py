"""python -m proofs.damage [--seed 0] [--only PART]: every damage of every file, and every verb that reads it.

Four small runs and their model folders (language, images, a table, sentences) are damaged in each file in turn
(`proofs.file_damages`), and the verbs are called on what is left. A verb may do its work or say what is wrong in one
line; a traceback, a hang, or a message of several lines is a fault, and is listed.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import random
import shutil
import signal
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import NamedTuple

from proofs.file_damages import Damage, damages_of, in_its_place
from proofs.journal import Journal
from proofs.reliability import record

SECONDS = 120  # a call that takes longer hangs
TINY = "--steps 4 --eval-every 1 --save-every 1 --quiet --threads 1"
NOT_READ = ("report.html", "lock")
COUNTED = {"done": "done", "refused": "refused", "traceback": "tracebacks", "hang": "hangs", "several lines": "wrong"}


class Outcome(NamedTuple):
    """How a call ended: done, refused in one line, or a fault (traceback, hang, several lines); and what was said."""

    kind: str
    said: str


@dataclass(frozen=True)
class Subject:
    """A run or a model folder; `verbs` are command lines, with {} for the folder."""

    folder: Path
    verbs: tuple[str, ...]
    inside: tuple[str, ...]  # the files that are damaged, below the folder


@dataclass
class Tally:
    """What has been counted, and the faults."""

    damages: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)


def make_subjects(home: Path, names: tuple[str, ...] = ()) -> dict[str, Subject]:
    """Train four small runs; each gives a run and a model folder, and the first one also a sharded folder."""
    recipes = {
        "language": (f"gpt2-chars --data.path {write_text(home)} --model.width 16 --model.depth 1 --model.heads 2 "
                     "--model.context 16 --batch 4", "generate {} fox --tokens 3"),
        "table": ("mlp-wine", f"predict {{}} {write_table(home)}"),
        "images": ("lenet-digits --batch 16", f"predict {{}} {write_image(home)}"),
        "sentences": ("lstm-sentiment --model.width 8 --batch 8", "predict {} good"),
    }  # fmt: skip
    found = {}
    for name, (recipe, ask) in recipes.items():
        if names and name not in names:
            continue
        run = home / name
        outcome = call(f"train {recipe} {TINY} --out {run}")
        if outcome.kind != "done":
            raise RuntimeError(f"{name}: {outcome}")
        forget_last(run)
        found[name] = Subject(
            run, ("evaluate {}", ask, "layers {}", "doctor {}", "runs {}", "resume {} --quiet"), files_of_run(run)
        )
        folder = home / f"{name}-model"
        checkpoint = next((run / "checkpoints").glob("step-*"))
        keep = shutil.ignore_patterns("state.*", "checksums.json")
        shutil.copytree(checkpoint, folder, ignore=keep)
        found[folder.name] = Subject(folder, (ask, "layers {}"), tuple(sorted(p.name for p in folder.iterdir())))
    if "language" in found:
        found["language-shards"] = make_shards(home, found["language-model"])
    return found


def make_shards(home: Path, whole: Subject) -> Subject:
    """The same model in several files of weights."""
    from descend.models import load

    folder = Path(shutil.copytree(whole.folder, home / "language-shards"))
    (folder / "model.safetensors").unlink()
    load(whole.folder).save_pretrained(folder, shard_bytes=16_000)
    shards = sorted(p.name for p in folder.glob("model*"))
    return Subject(folder, whole.verbs, tuple(shards[:1] + shards[-1:]))


def forget_last(run: Path) -> None:
    """Take the newest checkpoint away, so that a resume has a step to take."""
    checkpoints = run / "checkpoints"
    newest = sorted(checkpoints.glob("step-*"))[-1]
    shutil.rmtree(newest)
    left = sorted(checkpoints.glob("step-*"))[-1].name
    for name in ("last", "best"):
        link = checkpoints / name
        if not link.exists():
            link.unlink(missing_ok=True)
            link.symlink_to(left)


def files_of_run(run: Path) -> tuple[str, ...]:
    """The files of the run itself, and of its newest checkpoint."""
    newest = sorted((run / "checkpoints").glob("step-*"))[-1]
    own = [p.name for p in run.iterdir() if p.is_file() and p.name not in NOT_READ]
    inside = [str(p.relative_to(run)) for p in newest.iterdir()]
    return tuple(
        sorted([*own, *inside, "checkpoints", "checkpoints/last", "checkpoints/best", f"checkpoints/{newest.name}"])
    )


def write_text(home: Path) -> Path:
    path = home / "text.txt"
    path.write_text("the quick brown fox jumps over the lazy dog. " * 100)
    return path


def write_table(home: Path) -> Path:
    from sklearn.datasets import load_wine

    data, path = load_wine(), home / "wine.csv"
    row = ",".join(str(value) for value in data.data[0])
    path.write_text(",".join(data.feature_names) + f"\n{row}\n")
    return path


def write_image(home: Path) -> Path:
    from PIL import Image

    path = home / "digit.png"
    Image.new("L", (8, 8), 128).save(path)
    return path


def call(line: str) -> Outcome:
    """Run a verb in this process."""
    from descend.cli import main

    out, err = io.StringIO(), io.StringIO()

    def stop(_signal: int, _frame: FrameType | None) -> None:
        raise TimeoutError(f"{line}: more than {SECONDS} seconds")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code: object = main(line.split())
    except SystemExit as end:
        code = end.code
    except TimeoutError as error:
        return Outcome("hang", str(error))
    except BaseException as error:
        places = [f"{Path(at.filename).name}:{at.lineno}" for at in traceback.extract_tb(error.__traceback__)]
        return Outcome("traceback", f"{type(error).__name__}: {str(error)[:100]!r} at {' < '.join(places[:-4:-1])}")
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    said = err.getvalue().strip()
    if "Traceback" in said or code not in (0, 2):
        return Outcome("traceback", f"exit code {code}: {said[-200:]}")
    if code == 0:
        return Outcome("done", said)
    mistake = said[said.rfind("descend: ") :]
    return Outcome("refused" if len(mistake.splitlines()) == 1 else "several lines", mistake)


def list_damages(subject: Subject, seed: int) -> Iterator[tuple[str, str, Damage]]:
    """(file, what happens to it, how)."""
    for name in subject.inside:
        path = subject.folder / name
        found = damages_of(path, seed) if path.is_file() else in_its_place() | {"a file in its place": put_file}
        for what, damage in found.items():
            yield name, what, damage


def put_file(path: Path) -> None:
    shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    path.write_text("x")


def try_damage(subject: Subject, name: str, damage: Damage, home: Path) -> Iterator[tuple[str, Outcome]]:
    """Each verb on a damaged copy."""
    copy = Path(
        shutil.copytree(subject.folder, home / "copy", symlinks=True, ignore=shutil.ignore_patterns("tensorboard"))
    )
    try:
        damage(copy / name)
        for verb in subject.verbs:
            yield verb.partition(" ")[0], call(verb.format(copy))
    finally:
        shutil.rmtree(copy, ignore_errors=True)


def count(
    subjects: dict[str, Subject], seed: int, say: Callable[[str], object], only: str = "", every: int = 1
) -> Tally:
    """All of it, or one of `every` damages, drawn by the seed."""
    tally, draw = Tally(), random.Random(seed)
    for part, subject in subjects.items():
        for name, what, damage in list_damages(subject, seed):
            if only not in f"{part}/{name}: {what}" or draw.random() * every >= 1:
                continue
            tally.damages += 1
            with tempfile.TemporaryDirectory() as home:
                for verb, outcome in try_damage(subject, name, damage, Path(home)):
                    tally.outcomes[outcome.kind] += 1
                    if outcome.kind not in ("done", "refused"):
                        tally.faults.append(f"{verb}\t{part}/{name}: {what}\t{outcome.kind}\t{outcome.said}")
                        say(tally.faults[-1])
    return tally


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="damages whose name contains this: table/recipe.json")
    parser.add_argument("--every", type=int, default=1, help="try one of so many")
    given = parser.parse_args()
    say: Callable[[str], object] = lambda line: print(line, flush=True)
    with tempfile.TemporaryDirectory() as home:
        part = (given.only.partition("/")[0].partition("-")[0],) if "/" in given.only else ()
        subjects = make_subjects(Path(home), part)
        if given.only or given.every > 1:  # a part is shown, not recorded
            tally = count(subjects, given.seed, say, given.only, given.every)
            print(f"seed {given.seed}: {tell(tally)}")
            return 1 if tally.faults else 0
        journal = Journal("damage", given.seed)
        for name in journal.left(subjects):
            journal.add(name, tell(count({name: subjects[name]}, given.seed, say)))
            say(f"{name}: {journal.done[name]}")
    held = record("damage", journal.total(), given.seed)
    journal.close()
    return 0 if held else 1


def tell(tally: Tally) -> dict[str, int]:
    """The counts by their names in the record."""
    outcomes = {named: tally.outcomes[kind] for kind, named in COUNTED.items()}
    return {"calls": tally.outcomes.total(), "damages": tally.damages, **outcomes}


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main())
