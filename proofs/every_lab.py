"""python -m proofs.every_lab [labs ..]: every lab through its verb with the smallest budget, as one would try it first.

Nothing is claimed of the verdicts, which are mostly open with so little work: a lab has to end with its table, its page
and its JSON. What does not is printed, and the exit code is 1.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from pathlib import Path

from descend import labs
from proofs.journal import Journal
from proofs.reliability import record
from proofs.verbs import Outcome, call

BUDGET = "0.01s"


def try_lab(name: str, folder: Path) -> list[Outcome]:
    """The lab once as text with a page, and once on two seeds as JSON."""
    page = folder / f"{name}.html"
    given = ["lab", name, "--budget", BUDGET, "--keep", str(folder / "kept")]
    return [
        call([*given, "--seeds", "1"]),
        call([*given, "--seeds", "2", "--json"]),
        call([*given, "--out", str(page)]),
    ]


def count_lab(name: str) -> dict[str, int]:
    """Try a lab; what went wrong is printed."""
    with tempfile.TemporaryDirectory() as folder:
        found = try_lab(name, Path(folder))
    print(f"{name:28} {sum(outcome.seconds for outcome in found):6.1f} s", flush=True)
    failed = [outcome for outcome in found if outcome.fault or outcome.code]
    for outcome in failed:
        print(f"FAULT descend {' '.join(outcome.args)}: {outcome.fault or outcome.said}", flush=True)
    return {"labs": 1, "calls": len(found), "failed": len(failed)}


def main(chosen: list[str]) -> int:
    """Try some, which is shown, or all, which is recorded; returns the exit code."""
    if chosen:
        counts = Counter[str]()
        for name in chosen:
            counts.update(count_lab(name))
        print(dict(counts))
        return min(1, counts["failed"])
    journal = Journal("every_lab", 0)
    for name in journal.left(labs.names()):
        journal.add(name, count_lab(name))
    held = record("every_lab", journal.total(), 0)
    journal.close()
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
