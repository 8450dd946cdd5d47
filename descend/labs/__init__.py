"""Labs: one claim of the books a file, measured.

A lab says what it tests before it measures:

    ENTRIES, PRINTED       the entries of the catalogue, and the claim as the book prints it, with its erratum
    CLAIM, SCOPE           the claim as tested; sizes, data, and what it cannot say
    PREDICTIONS            named effects with thresholds, and what would refute them (`_evidence.py`)
    CONTROLS               what has to hold for the measurement to say anything; else the lab is open
    PRINTED_PREDICTIONS    the form that is printed, where it has an erratum: it gets a verdict of its own
    RETUNED                what was changed after a first verdict, and why

and then measures: `measure(seed, budget) -> numbers`, `effects(numbers) -> {name: value}`, `needs(numbers)`, which is
how many seconds a seed takes where the budget was too small for a verdict, and `figure(numbers)`. The numbers are ready
for JSON: lists of one length are the columns of a table, the rest facts.

A budget is in seconds of one core and buys work at the lab's price (`PRICE`, calibrated once): the numbers depend on
seed and budget alone, and what was really spent is reported beside them. `BUDGET` is enough for a verdict on a seed; a
measurement that would use more than the given budget is stopped. A claim counts when it was judged over seeds 0, 1
and 2 (`proofs/LABS.md`). Thresholds belong to the claim; what was chosen so that the claim can show at all (sizes,
rates, seeds that were looked at) is said in the lab's own words.
"""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path
from types import ModuleType

from descend.errors import Mistake, nearest


def names() -> list[str]:
    """Every lab: the files of this folder (an underscore becomes a dash)."""
    return sorted(p.stem.replace("_", "-") for p in Path(__file__).parent.glob("*.py") if not p.stem.startswith("_"))


def claim(name: str) -> str:
    """The claim of a lab, read from its source: listing the labs imports none of them."""
    path = Path(__file__).parent / f"{name.replace('-', '_')}.py"
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and [t.id for t in node.targets if isinstance(t, ast.Name)] == ["CLAIM"]:
            return str(ast.literal_eval(node.value))
    raise ValueError(f"{path.name} has no CLAIM")


def open_lab(name: str) -> ModuleType:
    """The module of a lab."""
    wanted = name.replace("_", "-")
    if wanted not in names():
        raise Mistake(f"there is no lab {name!r}.{nearest(wanted, names())} The labs: {', '.join(names())}")
    return import_module(f"{__name__}.{wanted.replace('-', '_')}")
