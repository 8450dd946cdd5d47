"""descend coverage: how much of the books is claimed, tested and proven."""

from __future__ import annotations

import json as json_module
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from descend.catalog.coverage import count, standings
from descend.errors import Mistake, nearest


def coverage(family: str | None = None) -> dict[str, Any]:
    """What is built so far, of all families or of one:

    {"families": {"losses": {"systems": 18, "claimed": 3, "tested": 3, "proven": 3}, ...},
     "systems": {slug: {"claimed": ["descend/ops/softmax.py:1", ...], "tested": [test, ...], "proven": true}, ...}}
    """
    found = standings()
    if family is not None:
        if family not in found:
            raise Mistake(f"there is no family {family!r}.{nearest(family, found)} Families: {', '.join(found)}")
        found = {family: found[family]}
    return {
        "families": {name: asdict(count(members)) for name, members in found.items()},
        "systems": {
            slug: {"claimed": list(s.claimed), "tested": list(s.tested), "proven": s.proven}
            for members in found.values()
            for slug, s in members.items()
        },
    }


def command(*, family: str | None = None, json: bool = False) -> None:
    """Per family of systems: how many the books have, and how many are claimed, tested and proven.

    Claimed: a docstring says so. Tested: a test is marked with it. Proven: all of its tests passed in the recorded run.

    Args:
        family: only this family, system by system.
        json: print JSON.

    Examples:
        descend coverage
        descend coverage --family losses
        descend coverage --json
    """
    found = coverage(family)
    if json:
        print(json_module.dumps(found, indent=1))
        return
    Console(highlight=False).print(systems_table(found) if family else families_table(found))


def families_table(found: dict[str, Any]) -> Table:
    """A row for each family, and the sum."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    names = ("systems", "claimed", "tested", "proven")
    table.add_column("family")
    for name in names:
        table.add_column(name, justify="right")
    for family, counts in found["families"].items():
        styles = ("", "", "", "green" if counts["proven"] else "")
        table.add_row(family, *(Text(str(counts[n]), s) for n, s in zip(names, styles, strict=True)))
    totals = [sum(c[n] for c in found["families"].values()) for n in names]
    table.add_row("all", *map(str, totals), style="bold")
    return table


def systems_table(found: dict[str, Any]) -> Table:
    """A row for each system: where it is claimed, how many tests it has, whether it is proven."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("system", no_wrap=True)
    table.add_column("tests", justify="right")
    table.add_column("proven")
    table.add_column("claimed in", overflow="fold")
    for slug, s in found["systems"].items():
        proven = Text("yes", "green") if s["proven"] else Text("no", "red") if s["tested"] else Text("")
        table.add_row(slug, str(len(s["tested"]) or ""), proven, ", ".join(s["claimed"]))
    return table
