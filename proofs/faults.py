"""python -m proofs.faults: an error or a crash at every file operation of train, resume and train --replace.

    error    from the k-th operation on every one fails (no space, no permission, read-only, broken disk): the command
             ends with one line that names a file, or does not need that operation
    crash    the process ends before the k-th operation that changes anything

After each of them the next command (resume, or the same one where nothing was begun) gives the bits of the run that was
never disturbed, and nothing half written is left. `--every N` tries every N-th operation only, beginning with one that
the seed chooses.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path

from proofs.reliability import record
from tests.faults.points import ERRORS, SCENARIOS, Outcome, count_operations, make_fault, prepare, try_point

WRONG = ("tracebacks", "unnamed", "hangs", "lost", "different")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m proofs.faults", description=__doc__)
    parser.add_argument("--every", type=int, default=1, help="try every N-th operation")
    parser.add_argument("--seed", type=int, default=0, help="chooses the first one")
    options = parser.parse_args()
    counts: Counter[str] = Counter()
    folder = Path(tempfile.mkdtemp(prefix="faults-"))
    try:
        expected = prepare(folder)
        for scenario in SCENARIOS:
            for kind in ("crash", *ERRORS):
                operations = count_operations(scenario, kind, folder)
                start = random.Random(f"{options.seed} {scenario.name} {kind}").randrange(options.every) + 1
                for k in range(start, len(operations) + 1, options.every):
                    outcome = try_point(scenario, make_fault(kind, k), folder, expected)
                    count(counts, kind, outcome)
                    if outcome.verdict in WRONG:
                        print(
                            f"{scenario.name}, {kind} at {k} ({operations[k - 1]}): {outcome.verdict}: {outcome.said}"
                        )
                print(f"{scenario.name}, {kind}: {len(operations)} operations; so far {dict(counts)}", flush=True)
    finally:
        shutil.rmtree(folder)
    told = {name: counts[name] for name in ("points", "crashes", "errors", "held", "unneeded", *WRONG)}
    if options.every > 1:  # a part is shown, not recorded
        print(told)
        return int(any(counts[name] for name in WRONG))
    return 0 if record("faults", told, options.seed) else 1


def count(counts: Counter[str], kind: str, outcome: Outcome) -> None:
    """A point: a crash or an error, and how it went; "unneeded" where the command did without the operation."""
    counts["points"] += 1
    counts["crashes" if kind == "crash" else "errors"] += 1
    counts["unneeded" if outcome.verdict == "done" else outcome.verdict] += 1


if __name__ == "__main__":
    sys.exit(main())
