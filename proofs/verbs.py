"""python -m proofs.verbs [recipes ..]: every verb on a tiny run of every recipe, in this process.

A call is right when it ends with 0; a verb that does not fit the kind of model may end with 2 and one line that begins
with "descend: ". Anything else is a fault: a traceback, several lines, another code. Counts are printed, with the
exhibits that could not be shown; the exit code is 1 when there is a fault. A run over all recipes is recorded.
"""

from __future__ import annotations

import io
import re
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from descend import recipes
from descend.cli import VERBS, main
from proofs.journal import Journal
from proofs.reliability import record
from proofs.tiny import shrink_flags, write_files


@dataclass(frozen=True)
class Tiny:
    """A recipe, where its tiny run is, and the files beside it."""

    name: str
    files: Path
    folder: Path

    @property
    def flags(self) -> list[str]:
        return shrink_flags(self.name, self.files)

    @property
    def run(self) -> str:
        return str(self.folder / self.name)


@dataclass(frozen=True)
class Outcome:
    """A call and how it ended."""

    args: tuple[str, ...]
    code: int
    said: str
    fault: str = ""
    """The last line of a traceback, or what is wrong with the message."""
    seconds: float = 0.0

    @property
    def kind(self) -> str:
        return "fault" if self.fault else "one line" if self.code else "done"


Calls = Callable[[Tiny], list[list[str]]]

OF_A_RECIPE: dict[str, Calls] = {
    "train": lambda tiny: [["train", tiny.name, *tiny.flags, "--quiet", "--replace", "--out", tiny.run]],
    "resume": lambda tiny: [["resume", tiny.run, "--quiet"]],
    "evaluate": lambda tiny: [["evaluate", tiny.run], ["evaluate", tiny.run, "--checkpoint", "last", "--json"]],
    "predict": lambda tiny: [["predict", tiny.run, *given] for given in ask(tiny)],
    "generate": lambda tiny: [["generate", tiny.run, prompt, "--tokens", "4"] for prompt in ("the cat", "")],
    "calibrate": lambda tiny: [["calibrate", tiny.run]],
    "landscape": lambda tiny: [["landscape", tiny.run, "--points", "3", "--json"]],
    "chat": lambda tiny: [["chat", tiny.run, "--once", "the cat", "--tokens", "4"]],
    "embed": lambda tiny: [["embed", tiny.run, *given] for given in ask(tiny)[:-1]],
    "sample": lambda tiny: [["sample", tiny.run, "-n", "2", *to] for to in (["--json"], place(tiny, "samples.png"))],
    "interpolate": lambda tiny: [["interpolate", tiny.run, "-n", "3", *place(tiny, "walk.png")]],
    "edit": lambda tiny: [["edit", tiny.run, show(tiny), "--strength", "0.5", *place(tiny, "edit.png")]],
    "encode": lambda tiny: [["encode", tiny.run, show(tiny), *place(tiny, "codes.safetensors")]],
    "decode": lambda tiny: [["decode", tiny.run, f"{tiny.run}-codes.safetensors", *place(tiny, "decoded.png")]],
    "track": lambda tiny: [["track", tiny.run, str(Path(show(tiny)).parent), "--json"]],
    "inspect": lambda tiny: [["inspect", tiny.run], ["inspect", tiny.run, "--checkpoint", "last", "--json"]],
    "export": lambda tiny: [["export", tiny.run, "--to", "safetensors", *place(tiny, "public")]],
    "act": lambda tiny: [["act", tiny.run, "--episodes", "1"]],
    "play": lambda tiny: [["play", tiny.run, "--episodes", "1", *place(tiny, "episode.gif")]],
    "serve": lambda tiny: [["serve", tiny.run, "--check"]],
    "judge": lambda tiny: [["judge", tiny.run, "--by", tiny.run, "-n", "4"]],
    "compress": lambda tiny: [["compress", tiny.run, "--int8", *place(tiny, "int8")]],
    "merge": lambda tiny: [["merge", tiny.run, f"{tiny.run}-merged"]],
    "doctor": lambda tiny: [["doctor", tiny.run], ["doctor", tiny.run, "--checkpoint", "best", "--json"]],
    "layers": lambda tiny: [["layers", tiny.run]],
    "trace": lambda tiny: [["trace", tiny.run]],
    "runs": lambda tiny: [["runs", tiny.run], ["runs", tiny.run, "--json"]],
    "plan": lambda tiny: [["plan", tiny.name, *tiny.flags]],
    "lr-find": lambda tiny: [["lr-find", tiny.name, *tiny.flags, "--points", "10"]],
    "tune": lambda tiny: [["tune", tiny.name, *tiny.flags, "--trials", "2", "--quiet", "--out", f"{tiny.run}-tune"]],
}
ALWAYS = ("train", "resume", "evaluate", "doctor", "runs", "plan", "tune")  # verbs that fit every kind
OTHERS = (
    "find", "explain", "lab", "coverage", "convert", "index", "ask", "prepare", "reproduce", "diff", "scale", "studio",
)  # verbs that know no run and no recipe, or several runs, or serve  # fmt: skip


def place(tiny: Tiny, name: str) -> list[str]:
    """Where a verb writes."""
    return ["--out", f"{tiny.run}-{name}", "--replace"]


def show(tiny: Tiny) -> str:
    """An image."""
    return str(tiny.files / "images" / "cat" / "0.png")


def ask(tiny: Tiny) -> list[list[str]]:
    """What predict is asked, of any run: a text, a masked text, an image, a table, and nothing."""
    files = tiny.files
    asked = ["the cat sat", "the [MASK] sat", show(tiny), str(files / "table.csv")]
    return [[], *([one] for one in asked), [asked[2], "--labels", "a cat, a dog"]]


def call(args: list[str]) -> Outcome:
    """Run the command line in this process, and judge how it ended."""
    out, err, began, fault = io.StringIO(), io.StringIO(), time.perf_counter(), ""
    try:
        with redirect_stdout(out), redirect_stderr(err):
            code = main(args)
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        where = traceback.extract_tb(error.__traceback__)[-1]
        code, fault = 1, f"{type(error).__name__}: {error} ({where.filename.rpartition('descend/')[2]}:{where.lineno})"
    said = err.getvalue().strip() or out.getvalue().strip()
    if not fault and (code not in (0, 2) or (code == 2 and not is_one_line(err.getvalue()))):
        fault = f"exit code {code}: {said}"
    return Outcome(tuple(args), code, said, fault, time.perf_counter() - began)


def is_one_line(said: str) -> bool:
    """Whether a message is one line, as a user's mistake is told."""
    return said.startswith("descend: ") and said.endswith("\n") and said.count("\n") == 1


def try_verbs(tiny: Tiny, verbs: tuple[str, ...] = tuple(OF_A_RECIPE)) -> dict[str, list[Outcome]]:
    """The verbs on a tiny run, training first."""
    found = {verb: [call(args) for args in OF_A_RECIPE[verb](tiny)] for verb in verbs}
    for verb in set(ALWAYS) & set(verbs):
        found[verb] = [replace(one, fault=one.fault or one.said) if one.code else one for one in found[verb]]
    return found


def list_missing(run: Path) -> list[str]:
    """Why exhibits of a run's report are not there."""
    path = run / "report.html"
    said = path.read_text(encoding="utf-8") if path.exists() else "Not shown: there is no report<"
    return re.findall(r"(?:Not shown: |This exhibit could not be drawn )(.*?)<", said)


def list_verbs() -> list[str]:
    """Every verb of the command line."""
    return [verb.name for group in VERBS.values() for verb in group]


def prove(names: Iterable[str], folder: Path, add: Callable[[str, dict[str, int]], None]) -> None:
    """Try every verb on every recipe, print faults as they come; what was counted of a recipe is added."""
    torch.set_num_threads(1)
    files = write_files(folder / "files")
    for name in names:
        found = try_verbs(Tiny(name, files, folder))
        every = [outcome for outcomes in found.values() for outcome in outcomes]
        kinds, missing = Counter(outcome.kind for outcome in every), list_missing(folder / name)
        counts = {"calls": len(every), "recipes": 1, "done": kinds["done"], "refused in one line": kinds["one line"]}
        add(name, {**counts, "wrong": kinds["fault"], "exhibits not shown": len(missing)})
        faults = [outcome for outcome in every if outcome.fault]
        slow = max(every, key=lambda outcome: outcome.seconds)
        print(
            f"{name}: {len(every)} calls, {len(faults)} faults, {sum(o.seconds for o in every):.1f} s "
            f"(longest {slow.args[0]}, {slow.seconds:.1f} s)",
            flush=True,
        )
        for outcome in faults:
            print(f"  {' '.join(outcome.args[:2])} ..: {outcome.fault}", flush=True)
        for reason in missing:
            print(f"  not shown: {reason}", flush=True)


def prove_part(names: list[str]) -> int:
    """Some recipes: shown, not recorded."""
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as scratch:
        prove(names, Path(scratch), lambda name, found: counts.update(found))
    print(dict(counts))
    return min(1, counts["wrong"])


def prove_all() -> int:
    """All recipes, and the record."""
    journal = Journal("verbs", 0)
    with tempfile.TemporaryDirectory() as scratch:
        prove(journal.left(recipes.names()), Path(scratch), journal.add)
    held = record("verbs", {**journal.total(), "verbs": len(OF_A_RECIPE)}, 0)
    journal.close()
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(prove_part(sys.argv[1:]) if sys.argv[1:] else prove_all())
