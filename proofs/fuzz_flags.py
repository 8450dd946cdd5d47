"""python -m proofs.fuzz_flags [--cases 5000] [--runs 300] [--seed 0]: random recipes with random flags and values.

A case is right when the flags are accepted, or refused with a Mistake of one line; a traceback, a hang and a signal are
faults. `cases` are parsed and checked, `runs` go on to train two steps of the recipe at its tiny size.
"""

from __future__ import annotations

import argparse
import io
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import FrameType

from hypothesis import strategies as st

from descend import recipes
from descend.cli import main as run_command
from descend.errors import Mistake
from descend.tuning.space import list_leaves
from descend.verbs.flags import parse
from descend.verbs.train import TrainFlags
from proofs.journal import Journal
from proofs.reliability import record
from proofs.tiny import shrink_flags, write_files

LIMIT = 60  # seconds that a case may take
MEMORY = 12 * 2**30  # bytes of address space, so that a size that slips through fails here and not on the machine
NUMBERS = """
    0 -0 1 -1 2 3 7 8 16 64 100 1000 65536 1000000 1000000000 1000000000000000000 0.0 -0.0 0.5 1.0 -1.0 1e-3 1e-12
    1e-320 1e30 1e300 1e400 nan -nan inf -inf 0.9999999 1.0000001 2.5 1e3 0x10 1_000 \u0663 \uff11 1,5 1/2 None True
"""
LONG = ("9" * 400, "9" * 5000, f"0.{'0' * 400}1", "a" * 300)
WORDS = """
    a min loss max accuracy auto on off cover none \u00e9 \U0001f4a9 - -- --steps ../.. /dev/null ' " [1] {} %s {x} . *
"""
CASES, RUNS, PART = 5000, 300, 50  # of a whole proof; a part of it that is not done again after an interruption
BLANKS = ("", " ", "\t", "min loss", "max accuracy", "a b", "\x1b[31m")

Case = tuple[str, tuple[str, ...]]


@dataclass(frozen=True)
class Outcome:
    """How a case ended: accepted, refused, or a fault with what was wrong."""

    kind: str
    said: str = ""


@cache
def list_known() -> dict[str, list[str]]:
    """The flags of every recipe, all but those that name files."""
    flags = {name: list_leaves(recipes.get(name)) for name in recipes.names()}
    return {name: [flag for flag in known if "path" not in flag] for name, known in flags.items()}


def draw_case() -> st.SearchStrategy[Case]:
    """A recipe, and one to three of its flags with one or two words each, mostly numbers."""

    @st.composite
    def draw(pick: st.DrawFn) -> Case:
        name = pick(st.sampled_from(list(list_known())))
        known = list_known()[name]
        numbers, words = st.sampled_from(NUMBERS.split()), st.sampled_from([*WORDS.split(), *BLANKS, *LONG])
        typed = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
        word = st.one_of(numbers, numbers, words, st.integers().map(str), st.floats().map(str), typed)
        flags: list[str] = []
        for flag in pick(st.lists(st.sampled_from(known), min_size=1, max_size=3)):
            flags += [f"--{flag}", *pick(st.lists(word, min_size=1, max_size=1 + pick(st.integers(0, 1))))]
        return name, tuple(flags)

    return draw()


def check_case(case: Case) -> Outcome:
    """Parse the flags and check the recipe; nothing is built."""
    name, flags = case

    def call() -> str:
        parse(TrainFlags, list(flags), f"descend train {name}", default=TrainFlags(recipes.get(name)))
        return ""

    return judge(call)


def train_case(case: Case, files: Path, out: Path) -> Outcome:
    """Train the tiny recipe with these flags for two steps, by the command line."""
    name, flags = case

    def call() -> str:
        said = io.StringIO()
        with redirect_stdout(io.StringIO()), redirect_stderr(said):
            code = run_command(["train", name, *shrink_flags(name, files), *flags, "--out", str(out), "--quiet"])
        if code not in (0, 2):
            raise RuntimeError(f"exit code {code}")
        return said.getvalue() if code else ""

    return judge(call)


def judge(call: Callable[[], str]) -> Outcome:
    """Call within the time limit; what is said must be one line."""
    signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, LIMIT)
    try:
        said = call().rstrip("\n")
    except Mistake as mistake:
        said = str(mistake)
    except SystemExit as end:
        return Outcome("help" if end.code in (0, None) else "fault", f"exit code {end.code}")
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        where = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{Path(where.filename).name}:{where.lineno}"
        kind = "hang" if isinstance(error, TooLong) else "fault"
        return Outcome(kind, f"{type(error).__name__} in {place}: {' '.join(str(error).split())[:200]}")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    if "\n" in said or "Traceback" in said:
        return Outcome("fault", f"several lines: {said[:300]!r}")
    return Outcome("refused" if said else "accepted", said)


class TooLong(BaseException):
    """A case that does not end."""


def stop(number: int, frame: FrameType | None) -> None:
    raise TooLong(f"no end within {LIMIT} s")


def draw_cases(count: int, seed: int) -> list[Case]:
    """So many cases, the same for the same seed."""
    from hypothesis import HealthCheck, Phase, given, settings
    from hypothesis import seed as fix

    found: list[Case] = []
    quiet = settings(
        max_examples=count, database=None, deadline=None, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip

    @fix(seed)
    @quiet
    @given(draw_case())
    def collect(case: Case) -> None:
        found.append(case)

    collect()
    return found[:count]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--cases", type=int, default=CASES)
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    journal = Journal("fuzz_flags", asked.seed, f"{asked.cases} {asked.runs}")
    cases = draw_cases(asked.cases + asked.runs, asked.seed)
    first = {str(start): start for start in range(0, len(cases), PART)}
    for part in journal.left(first):
        numbers = range(first[part], min(first[part] + PART, len(cases)))
        journal.add(part, try_cases({n: cases[n] for n in numbers}, asked.cases))
    counts = journal.total()
    journal.close()
    if asked.cases < CASES or asked.runs < RUNS:  # a part is shown, not recorded
        print(f"seed {asked.seed}: {dict(counts)}")
        return int(counts["tracebacks"] + counts["hangs"] > 0)
    return 0 if record("fuzz_flags", counts, asked.seed) else 1


def try_cases(cases: dict[int, Case], parsed: int) -> dict[str, int]:
    """Cases by their numbers: those from `parsed` on are trained; what went wrong is printed."""
    kinds = ("cases", "parsed", "trained", "accepted", "refused in one line", "help", "tracebacks", "hangs")
    counts = dict.fromkeys(kinds, 0)
    with tempfile.TemporaryDirectory() as folder:
        files = write_files(Path(folder) / "files")
        for number, case in cases.items():
            train, began = number >= parsed, time.perf_counter()
            found = train_case(case, files, Path(folder) / f"run-{number}") if train else check_case(case)
            kind = {"refused": "refused in one line", "fault": "tracebacks", "hang": "hangs"}.get(
                found.kind, found.kind
            )
            for name in ("cases", "trained" if train else "parsed", kind):
                counts[name] += 1
            if found.kind in ("fault", "hang"):
                typed, seconds = " ".join(map(repr, case[1]))[:200], time.perf_counter() - began
                print(f"{seconds:5.1f} s  {case[0]} {typed}\n    {found.said}", file=sys.stderr, flush=True)
    return counts


if __name__ == "__main__":
    raise SystemExit(main())
