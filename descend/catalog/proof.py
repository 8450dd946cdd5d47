"""What the last complete run of the test suite recorded: for each system its tests, and whether all of them passed.

`tests/conftest.py` writes the record; a skipped test is left out of it. The record holds no times, so that it changes
only when a proof does.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

PATH = Path(__file__).parent / "proof.json"


@dataclass(frozen=True)
class Proof:
    """The tests marked with a system, and whether every one of them passed."""

    tests: tuple[str, ...] = ()
    passed: bool = False


def proofs(path: Path = PATH) -> dict[str, Proof]:
    """slug -> Proof, for every system that has tests."""
    if not path.exists():
        return {}
    record = json.loads(path.read_text(encoding="utf-8"))
    return {slug: Proof(tuple(p["tests"]), p["passed"]) for slug, p in record.items()}


def written(record: Mapping[str, Proof]) -> str:
    """The record as the text of proof.json: sorted, so that a difference is a change."""
    return json.dumps({slug: asdict(record[slug]) for slug in sorted(record)}, indent=1) + "\n"
