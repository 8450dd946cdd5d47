"""The systems of the five books: the list, the books' entries behind each, and their worked examples.

    worked example --(part, entry name)--> entry --(the row's entries)--> system

`spec/systems.tsv` is the yardstick: every entry of the books is in exactly one row. Reading it needs no torch, so that
`descend find` answers at once.
"""

from __future__ import annotations

import csv
import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

SPEC = Path(__file__).parent / "spec"

BOOKS = {
    "DLN": "Deep Learning, Notes of Luigi Battista, A.Y. 2024/25",
    "MF": "Mathematical Foundations of Neural Networks and Image Recognition, A Rigorous Treatment",
    "S940": "STAT 940: Deep Learning (Ali Ghodsi)",
    "DLD": "Deep Learning, A collection of definitions, theorems, and formulae",
    "VOM": "Vectors of meaning, A mathematical journey into transformers (Valentin Radu)",
}


@dataclass(frozen=True)
class System:
    """One row of the yardstick. `depth` is "named" when no book defines it, only names it."""

    slug: str
    name: str
    family: str
    kind: str
    entries: tuple[str, ...]
    depth: str
    note: str


@dataclass(frozen=True)
class Entry:
    """What one book says about a system. `places` are (book, section), e.g. ("VOM", "9.1, 12.2.5")."""

    id: str
    name: str
    kind: str
    places: tuple[tuple[str, str], ...]
    defines: str


@dataclass(frozen=True)
class Example:
    """A worked example: what the book printed, and what its own inputs give when computed again.

    The verdict is matches, rounding (agrees to the printed digits), erratum (printed is wrong), inconsistent (the text
    contradicts itself, or prints one of several conventions) or not computable (data or figure missing).
    """

    id: str
    system: str | None  # slug; None: it belongs to no system
    book: str
    section: str
    title: str
    inputs: dict[str, Any]
    computation: str
    printed: dict[str, Any]
    recomputed: dict[str, Any]
    verdict: str
    note: str


@cache
def systems() -> dict[str, System]:
    """slug -> System, in the order of the list: family by family, inside a family from simple to advanced."""
    with (SPEC / "systems.tsv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    return {
        r["id"]: System(
            r["id"], r["name"], r["family"], r["kind"], tuple(r["entries"].split(",")), r["depth"], r["note"]
        )
        for r in rows
    }


@cache
def families() -> dict[str, list[System]]:
    """family -> its systems, in the order of the list."""
    found: dict[str, list[System]] = {}
    for system in systems().values():
        found.setdefault(system.family, []).append(system)
    return found


@cache
def entries() -> dict[str, Entry]:
    """entry id (PART.N) -> Entry."""
    with (SPEC / "entries.jsonl").open(encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    return {r["id"]: Entry(r["id"], r["name"], r["kind"], places(r["section"]), r["defines"]) for r in rows}


def places(section: str) -> tuple[tuple[str, str], ...]:
    """The books and sections of a heading: S940 5.1; DLD 5.6, 6.8 is two. DLN is cited by titles."""
    parts = re.split(rf"(?:^|; )({'|'.join(BOOKS)}) ", section)[1:]
    return tuple(zip(parts[::2], parts[1::2], strict=True))


@cache
def examples() -> dict[str, Example]:
    """worked id -> Example, for all parts of the books."""
    slug_of = {entry: slug for slug, system in systems().items() for entry in system.entries}
    named = {(e.id.rsplit(".", 1)[0], e.name): e.id for e in entries().values()}
    found = {}
    for path in sorted((SPEC / "worked").glob("*.json")):
        for w in json.loads(path.read_text(encoding="utf-8")):
            # One item belongs to no system: MF-31.1-chapter-numbers checks the text's own cross-references.
            entry = named.get((path.stem, w["system"]))
            found[w["id"]] = Example(
                w["id"], slug_of[entry] if entry else None, w["seed"], w["section"], w["title"], w["inputs"],
                w["computation"], w["printed"], w["recomputed"], w["verdict"], w["note"],
            )  # fmt: skip
    return found


def examples_of(slug: str) -> list[Example]:
    """The worked examples of one system, in the books' order."""
    return [e for e in examples().values() if e.system == slug]
