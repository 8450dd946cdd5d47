"""The record of what was broken on purpose: counts, seed, date and machine (RELIABILITY.json, docs/reliability.md).

    record("faults", {"points": 712, "equal": 712, "tracebacks": 0}, seed=0)

The first count says how many cases there were; names in BAD must be 0 for the proof to hold. Two proofs may record at
the same time: the folder is locked, the file written aside and renamed.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from descend.engine.hardware import describe_environment

HERE = Path(__file__).parent
PATH, PAGE = HERE / "RELIABILITY.json", HERE.parent / "docs" / "reliability.md"
BAD = frozenset(
    {"tracebacks", "hangs", "signals", "different", "lost", "silent", "wrong", "failed", "growing", "unnamed"}
)
HEAD = """# Broken on purpose

`make unbreakable` runs every proof below and writes this page from `proofs/RELIABILITY.json`. One of them alone:
`python -m proofs.NAME --seed N`. The suite runs a seeded sample of each. A proof holds when none of its counts in bold
is above 0.
"""


def record(name: str, counts: Mapping[str, int], seed: int) -> bool:
    """Print the summary line of a proof and keep it; returns whether it holds (no bad count above 0)."""
    here = describe_environment()
    entry = {
        "counts": dict(counts),
        "seed": seed,
        "date": time.strftime("%Y-%m-%d"),
        "machine": f"{here['cpu']}, {here['cores']} cores, torch {here['torch']}, Python {here['python']}",
        "holds": holds(counts),
    }
    lock = os.open(PATH.parent, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        entries = dict(sorted({**read_entries(), name: entry}.items()))
        _write(PATH, json.dumps(entries, indent=2) + "\n")
        _write(PAGE, format_page(entries))
    finally:
        os.close(lock)
    shown = ", ".join(f"{count:,} {what}" for what, count in counts.items())
    print(f"{name}: {shown} (seed {seed}) -> {'holds' if entry['holds'] else 'FAILS'}", flush=True)
    return bool(entry["holds"])


def holds(counts: Mapping[str, int]) -> bool:
    """Whether no bad count is above 0, and there was a case at all."""
    return next(iter(counts.values()), 0) > 0 and not any(counts.get(name, 0) for name in BAD)


def read_entries() -> dict[str, Any]:
    """What was recorded so far."""
    return json.loads(PATH.read_text(encoding="utf-8")) if PATH.exists() else {}


def format_page(entries: Mapping[str, Any]) -> str:
    """docs/reliability.md: a row for each proof."""
    lines = [HEAD, "| proof | what is done | counts | seed | holds | date, machine |", "|---|---|---|---|---|---|"]
    for name, entry in sorted(entries.items()):
        counts = ", ".join(_show_count(what, count) for what, count in entry["counts"].items())
        verdict = "yes" if entry["holds"] else "NO"
        lines.append(
            f"| `proofs.{name}` | {describe_proof(name)} | {counts} | {entry['seed']} | {verdict} "
            f"| {entry['date']}, {entry['machine']} |"
        )
    return "\n".join(lines) + "\n"


def describe_proof(name: str) -> str:
    """The first line of the proof's docstring, without its command."""
    try:
        lines = (import_module(f"proofs.{name}").__doc__ or "").strip().splitlines()
    except ImportError:
        return ""
    first = lines[0] if lines else ""
    return first.partition(": ")[2].rstrip(".") or first.rstrip(".")


def _show_count(what: str, count: int) -> str:
    return f"**{count:,} {what}**" if what in BAD else f"{count:,} {what}"


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    aside.write_text(text, encoding="utf-8")
    aside.replace(path)
