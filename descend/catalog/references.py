"""The papers that the books cite, and the systems that stand for them here.

`spec/references.tsv` has a line for each: the 141 numbered ones of DLN's bibliography, and the eleven that VOM names in
its second half. DLN's entry 15 (batch normalization) prints the editor of the proceedings as the author, an erratum; 27
and 29 are one paper; 127 is cited for BYOL, too, whose own paper is not in the list. The note of a line says so.

Systems: notation-glossary-bibliography
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache

from descend.catalog.systems import SPEC


@dataclass(frozen=True)
class Reference:
    """A paper, its number in its book's list, and what is built of it."""

    number: int
    book: str
    authors: str
    title: str
    year: int
    systems: tuple[str, ...]
    note: str = ""

    def __str__(self) -> str:
        return f"{self.authors}, {self.title} ({self.year}) [{self.book} {self.number}]"


@cache
def references() -> tuple[Reference, ...]:
    """Every paper, in the order of the lists."""
    with (SPEC / "references.tsv").open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        return tuple(
            Reference(
                int(row["number"]),
                row["book"],
                row["authors"],
                row["title"],
                int(row["year"]),
                tuple(row["systems"].split()),
                row["note"] or "",
            )
            for row in rows
        )


@cache
def references_of(system: str) -> tuple[Reference, ...]:
    """The papers of a system; one that both books cite is listed once."""
    found: dict[str, Reference] = {}
    for reference in references():
        if system in reference.systems:
            found.setdefault(reference.title.lower(), reference)
    return tuple(found.values())
