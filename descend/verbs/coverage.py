"""descend coverage: how much of the books is claimed, and proven in its core or as a whole."""

from __future__ import annotations

import json as json_module
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from descend.catalog.coverage import Standing, count, standings
from descend.catalog.demands import demands
from descend.errors import Mistake, nearest

COUNTS = ("systems", "claimed", "core", "whole")


def coverage(family: str | None = None) -> dict[str, Any]:
    """What is built so far, of all families or of one.

    Args:
        family: only this one, such as "losses"; None: all.

    Returns:
        {"families": {"losses": {"systems": 18, "claimed": 18, "core": 18, "whole": 12}, ...},
         "systems": {slug: {"claimed": ["descend/ops/softmax.py:1", ...], "tests": [test, ...],
                            "core": true, "whole": false, "demands": 5, "open": ["jacobian", ...]}, ...}}
    """
    found = standings()
    if family is not None:
        if family not in found:
            raise Mistake(f"there is no family {family!r}.{nearest(family, found)} Families: {', '.join(found)}")
        found = {family: found[family]}
    return {
        "families": {name: asdict(count(members)) for name, members in found.items()},
        "systems": {slug: standing_as_json(s) for members in found.values() for slug, s in members.items()},
    }


def standing_as_json(s: Standing) -> dict[str, Any]:
    return {
        "claimed": list(s.claimed),
        "tests": list(s.proof.tests),
        "core": s.core,
        "whole": s.whole,
        "demands": len(s.demands),
        "open": list(s.open),
    }


def command(*, family: str | None = None, open: bool = False, json: bool = False) -> None:
    """Per family of systems: how many the books have, and how many are claimed, proven in their core and as a whole.

    Claimed: a docstring says so. Core: its numbers agree, all tests of them passed. Whole: so is every demand of its
    row, each form, option, experiment and measurement that the books ask for.

    Args:
        family: only this family, system by system.
        open: list the open demands of every system that is claimed.
        json: print JSON.

    Examples:
        descend coverage
        descend coverage --family losses
        descend coverage --family losses --open
        descend coverage --json
    """
    found = coverage(family)
    if json:
        print(json_module.dumps(found, indent=1))
    elif open:
        Console(highlight=False).print(open_table(found))
    else:
        Console(highlight=False).print(systems_table(found) if family else families_table(found))


def families_table(found: dict[str, Any]) -> Table:
    """A row for each family, and the sum."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("family")
    for name in COUNTS:
        table.add_column(name, justify="right")
    for family, counts in found["families"].items():
        styles = ("", "", "", "green" if counts["whole"] else "")
        table.add_row(family, *(Text(str(counts[n]), s) for n, s in zip(COUNTS, styles, strict=True)))
    totals = [sum(c[n] for c in found["families"].values()) for n in COUNTS]
    table.add_row("all", *map(str, totals), style="bold")
    return table


def systems_table(found: dict[str, Any]) -> Table:
    """A row for each system: how many tests it has, what they prove, and where it is claimed."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("system", no_wrap=True)
    table.add_column("tests", justify="right")
    table.add_column("core")
    table.add_column("whole")
    table.add_column("claimed in", overflow="fold")
    for slug, s in found["systems"].items():
        core = Text("yes", "green") if s["core"] else Text("no", "red") if s["tests"] else Text("")
        table.add_row(slug, str(len(s["tests"]) or ""), core, whole_cell(s), ", ".join(s["claimed"]))
    return table


def whole_cell(s: dict[str, Any]) -> Text:
    """yes, how many demands are open, or "no list" where nobody has gone through the row."""
    if s["whole"]:
        return Text("yes", "green")
    if not s["claimed"]:
        return Text("")
    return Text(f"{len(s['open'])} open", "yellow") if s["demands"] else Text("no list", "dim")


def open_table(found: dict[str, Any]) -> Table:
    """A row for each open demand of the systems that are claimed."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("system", no_wrap=True)
    table.add_column("demand", no_wrap=True)
    table.add_column("what must be shown", overflow="fold")
    for slug, s in found["systems"].items():
        if s["claimed"] and not s["demands"]:
            table.add_row(slug, "", Text("no list of demands yet", "dim"))
        for demand in s["open"] if s["claimed"] else ():
            table.add_row(slug, demand, Text(demands()[slug][demand].text))
    return table
