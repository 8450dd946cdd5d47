"""Labs: one claim of the books a file, measured.

A lab holds `CLAIM`, `BUDGET`, `measure(seed, budget) -> numbers`, `verdict(numbers)` ("supported", "refuted" or "open")
and `figure(numbers)`. The numbers are ready for JSON: lists of one length are the columns of a table, the rest facts.

A budget is in seconds of one core and buys work at the lab's price (`PRICE`, calibrated once): the numbers depend on
seed and budget alone, and what was really spent is reported beside them. `BUDGET` is enough for a verdict other than
"open". The thresholds of a verdict belong to the claim and are stated with it; what was chosen so that the claim can
show at all (sizes, rates, seeds that were looked at) is said in the lab's own words. A claim counts when seeds 0, 1 and
2 agree (`proofs/LABS.md`).
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
