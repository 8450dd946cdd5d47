"""python -m mutation [-n 300] [--folder nn] [--seed 0]: change the library, one thing at a time; which test notices?

The checkout is copied twice, and each copy takes one mutant after the other: the tests that reach the changed file
(`tests/touched.py`) run on it, nearest first, until one fails. A mutant that no test notices has survived: a test is
missing there, or the change is none. Results are appended to runs/mutation/SEED.jsonl; a run that was stopped goes on
where it was, and a file that has changed since is tried anew.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue
from typing import Any

from mutation.mutants import Mutant, find_mutants
from tests.touched import find_tests

ROOT = Path(__file__).parents[1]
RUNS = ROOT / "runs" / "mutation"
COPIED = ("descend", "tests", "proofs", "benchmarks", "mutation", "pyproject.toml", "README.md")
COSMETIC = ("views", "report", "web", "recipes", "__main__.py")  # what a figure or a page looks like; settings
AT_ONCE, TEST_FILES, TIMEOUT = 2, 12, 180
Result = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m mutation", description=__doc__)
    parser.add_argument("-n", type=int, default=300, help="how many mutants")
    parser.add_argument("--folder", default="", help="only below this folder of the package, e.g. nn or nn/attention")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    path = RUNS / f"{given.seed}.jsonl"
    with tempfile.TemporaryDirectory() as temporary:  # nothing is read from the checkout later: it may change meanwhile
        copies = [copy_checkout(ROOT, Path(temporary) / "0")]
        copies += [copy_checkout(copies[0], Path(temporary) / str(number)) for number in range(1, AT_ONCE)]
        chosen = choose(given.n, given.folder, given.seed, copies[0])
        known = read_results(path)
        todo = {name: mutant for name, mutant in chosen.items() if name not in known}
        print(f"{len(chosen)} mutants, {len(chosen) - len(todo)} of them tried before", flush=True)
        try_all(todo, copies, path)
    known = read_results(path)
    print("\n".join(report([known[name] for name in chosen])))


def choose(count: int, folder: str, seed: int, root: Path) -> dict[str, Mutant]:
    """A sample of all mutants, by seed; each is called by the change and the source that it is made in."""
    found = []
    for path in sorted((root / "descend" / folder).rglob("*.py")):
        name = path.relative_to(root).as_posix()
        if name.split("/")[1] not in COSMETIC:
            source = path.read_text(encoding="utf-8")
            found += [(hash_text(mutant.key + source), mutant) for mutant in find_mutants(source, name)]
    return dict(random.Random(seed).sample(found, min(count, len(found))))


def hash_text(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def read_results(path: Path) -> dict[str, Result]:
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return {result["id"]: result for result in map(json.loads, lines)}


def try_all(mutants: dict[str, Mutant], copies: list[Path], path: Path) -> None:
    """Try them in the copies of the checkout, one at a time in each, and append each result as it comes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    free: Queue[Path] = Queue()
    for copy in copies:
        free.put(copy)

    def attempt(name: str) -> Result:
        copy = free.get()
        try:
            return {"id": name, **try_mutant(mutants[name], copy)}
        finally:
            free.put(copy)

    with path.open("a", encoding="utf-8") as file, ThreadPoolExecutor(len(copies)) as pool:
        for number, result in enumerate(pool.map(attempt, mutants), 1):
            file.write(json.dumps(result, ensure_ascii=False) + "\n")
            file.flush()
            print(f"{number}/{len(mutants)} {result['outcome']:8} {result['change']}", flush=True)


def copy_checkout(root: Path, to: Path) -> Path:
    to.mkdir()
    for name in COPIED:
        source = root / name
        if source.is_dir():
            shutil.copytree(source, to / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, to / name)
    return to


def try_mutant(mutant: Mutant, copy: Path) -> Result:
    """Run the tests on a mutant; what fails must pass without it, or it proves nothing."""
    path, began = copy / mutant.path, time.monotonic()
    source = path.read_text(encoding="utf-8")
    tests = [test for test in find_tests([mutant.path], copy, TEST_FILES) if (copy / test).exists()]
    path.write_text(mutant.apply(source), encoding="utf-8")
    try:
        outcome, by = run_tests(tests, copy)
    finally:
        path.write_text(source, encoding="utf-8")
    again = [by] if outcome == "caught" else tests
    if outcome != "survived" and run_tests(again, copy)[0] == outcome:
        outcome = "unclear"  # the unchanged source does not pass either
    seconds = round(time.monotonic() - began, 1)
    change = f"{mutant.path}:{mutant.line}  {shorten(mutant.old)}  ->  {shorten(mutant.new)}"
    return {"outcome": outcome, "change": change, "by": by, "tests": len(tests), "seconds": seconds}


def shorten(text: str, width: int = 90) -> str:
    line = " ".join(text.split())
    return line if len(line) <= width else f"{line[: width - 1]}…"


def run_tests(tests: list[str], copy: Path) -> tuple[str, str]:
    """("caught", the test that failed), ("timeout", "") or ("survived", "")."""
    if not tests:
        return "survived", ""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "--tb=no", "-p", "no:xdist", f"--proof={copy / 'proof.tsv'}"]
    environment = {**os.environ, "PYTHONPATH": str(copy), "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(
            [*command, *tests], cwd=copy, env=environment, capture_output=True, text=True, timeout=TIMEOUT
        )
    except subprocess.TimeoutExpired:
        return "timeout", ""
    if done.returncode == 0:
        return "survived", ""
    failed = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", done.stdout, re.MULTILINE)
    return "caught", failed[1] if failed else tests[0]


def report(results: list[Result]) -> list[str]:
    """Caught of tried by folder, and what survived. A mutant that runs for ever was noticed."""
    tried, caught = Counter[str](), Counter[str]()
    for result in results:
        folder = result["change"].split("/")[1]
        tried[folder] += result["outcome"] != "unclear"
        caught[folder] += result["outcome"] in ("caught", "timeout")
    lines = [
        f"{result['outcome']}: {result['change']}" for result in results if result["outcome"] in ("survived", "unclear")
    ]
    lines += [f"{folder:12} {caught[folder]:4} of {tried[folder]:4} caught" for folder in sorted(tried)]
    total = sum(tried.values())
    return [*lines, f"{sum(caught.values())} of {total} caught ({sum(caught.values()) / max(total, 1):.1%})"]


if __name__ == "__main__":
    main()
