"""Labs: one claim of the books a file, measured.

A lab holds `CLAIM`, `measure(seed, budget) -> numbers`, `verdict(numbers)` ("supported", "refuted" or "open") and
`figure(numbers)`. The numbers are ready for JSON: lists of one length are the columns of a table, the rest are facts.
The budget is in seconds of one core, but buys work at a fixed price: the numbers depend on seed and budget alone.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from types import ModuleType

from descend.errors import Mistake, nearest


def names() -> list[str]:
    """Every lab: the files of this folder (an underscore becomes a dash)."""
    return sorted(p.stem.replace("_", "-") for p in Path(__file__).parent.glob("*.py") if not p.stem.startswith("_"))


def open_lab(name: str) -> ModuleType:
    """The module of a lab."""
    wanted = name.replace("_", "-")
    if wanted not in names():
        raise Mistake(f"there is no lab {name!r}.{nearest(wanted, names())} The labs: {', '.join(names())}")
    return import_module(f"{__name__}.{wanted.replace('-', '_')}")
