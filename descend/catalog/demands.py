"""What each row of the list asks for: every form, option, experiment and measurement, as one short line.

`spec/demands/FAMILY.tsv` has a line for each demand: the system, a short name for the demand (unique within the row),
what must be shown, and the worked examples that show it, if any (ids with commas between). A test proves a demand with
`@pytest.mark.system("gru", "books-form")`. A row is whole when every one of its demands is proven; a row without a
list is never whole.
"""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path
from typing import NamedTuple

from descend.catalog.systems import SPEC

FOLDER = SPEC / "demands"


class Demand(NamedTuple):
    """One line: what must be shown of a system. `examples` are the worked examples whose agreement shows it."""

    family: str
    system: str
    name: str
    text: str
    examples: tuple[str, ...] = ()


@cache
def demands(folder: Path = FOLDER) -> dict[str, dict[str, Demand]]:
    """slug -> name -> Demand, in the order of the files; a row that nobody has gone through is not there."""
    found: dict[str, dict[str, Demand]] = {}
    for demand in read_demands(folder):
        found.setdefault(demand.system, {})[demand.name] = demand
    return found


def read_demands(folder: Path = FOLDER) -> list[Demand]:
    """The demands as the files have them, line by line."""
    found = []
    for path in sorted(folder.glob("*.tsv")):
        with path.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
                examples = tuple((row.get("examples") or "").replace(",", " ").split())
                found.append(Demand(path.stem, row["system"], row["demand"], row["text"], examples))
    return found
