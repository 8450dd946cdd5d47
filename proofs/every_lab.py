"""python -m proofs.every_lab [labs ..]: every lab through its verb with the smallest budget, as one would try it first.

Nothing is claimed of the verdicts, which are mostly open with so little work: a lab has to end with its table, its page
and its JSON. What does not is printed, and the exit code is 1.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from descend import labs
from proofs.verbs import Outcome, call

BUDGET = "0.01s"


def try_lab(name: str, folder: Path) -> list[Outcome]:
    """The lab once as text with a page, and once on two seeds as JSON."""
    page = folder / f"{name}.html"
    return [
        call(["lab", name, "--budget", BUDGET, "--out", str(page)]),
        call(["lab", name, "--budget", BUDGET, "--seeds", "2", "--json"]),
    ]


def main(chosen: list[str]) -> int:
    """Try them all; returns the exit code."""
    failed = []
    with tempfile.TemporaryDirectory() as folder:
        for name in chosen or labs.names():
            found = try_lab(name, Path(folder))
            print(f"{name:28} {sum(outcome.seconds for outcome in found):6.1f} s", flush=True)
            failed += [outcome for outcome in found if outcome.fault or outcome.code]
    for outcome in failed:
        print(f"FAULT descend {' '.join(outcome.args)}: {outcome.fault or outcome.said}")
    print(f"{len(chosen or labs.names())} labs, {len(failed)} faults")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
