"""lab: test a claim of the books by measurement, and say whether it is supported, refuted or open."""

from __future__ import annotations

import io
import json as json_format
import textwrap
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from descend import labs
from descend.errors import Mistake
from descend.verbs.flags import seconds
from descend.verbs.table import painted, table

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def lab(name: str, seed: int = 0, budget: float = 10.0) -> dict[str, Any]:
    """Measure the claim of a lab: {"lab", "claim", "seed", "budget", "numbers", "verdict"}."""
    module = labs.open_lab(name)
    numbers = module.measure(seed, budget)
    found = {"lab": name.replace("_", "-"), "claim": module.CLAIM, "seed": seed, "budget": budget}
    return {**found, "numbers": numbers, "verdict": module.verdict(numbers)}


def command(
    name: str = "", /, *, seed: int = 0, budget: str = "10s", out: Path | None = None, json: bool = False
) -> None:
    """Test a claim of the books: the claim, what was measured, and the verdict.

    Without a name, list the labs.

    Args:
        name: the lab
        seed: seed of all that is random in it
        budget: how much work to spend, as time of one core: 10s, 2m
        out: write the figure (.png, .svg) or a page with everything (.html)
        json: print JSON instead of text

    Examples:
        descend lab
        descend lab attention-scale
        descend lab attention-scale --budget 1m --out scale.html
    """
    if not name:
        claims = [{"lab": known, "claim": labs.claim(known)} for known in labs.names()]
        print(json_format.dumps(claims, indent=1) if json else "\n\n".join(map(entry, claims)))
        return
    if out is not None:
        check(out)
    found = lab(name, seed, seconds(budget))
    print(json_format.dumps(found, indent=1) if json else told(found))
    if out is not None:
        save(found, labs.open_lab(name).figure(found["numbers"]), out)
        if not json:
            print(f"\nwritten: {out}")


def entry(lab: dict[str, str]) -> str:
    return lab["lab"] + "\n" + textwrap.fill(lab["claim"], 78, initial_indent="  ", subsequent_indent="  ")


def told(found: dict[str, Any]) -> str:
    """Claim, table, facts and verdict as text."""
    columns, facts = split(found["numbers"])
    parts = [textwrap.fill(f"Claim: {found['claim']}", 80)]
    if columns:
        parts.append(table([title(name) for name in columns], rows_of(columns)))
    if facts:
        parts.append("\n".join(f"{title(name)}: {value:.4g}" for name, value in facts.items()))
    return "\n\n".join([*parts, painted(f"Verdict: {found['verdict']}")])


def split(numbers: dict[str, Any]) -> tuple[dict[str, list[Any]], dict[str, float]]:
    """The columns of the table, and the single numbers."""
    columns = {name: value for name, value in numbers.items() if isinstance(value, list)}
    return columns, {name: value for name, value in numbers.items() if isinstance(value, int | float)}


def rows_of(columns: dict[str, list[Any]]) -> list[list[Any]]:
    return [list(row) for row in zip(*columns.values(), strict=True)]


def title(name: str) -> str:
    return name if name == "d_k" else name.replace("_", " ")


def check(out: Path) -> None:
    """Refuse a place that cannot be written to before the work is done, not after."""
    if out.suffix not in (".png", ".svg", ".html"):
        raise Mistake(f"--out {out}: the name must end in .png, .svg or .html")
    if not out.parent.is_dir():
        raise Mistake(f"--out {out}: there is no folder {out.parent}")


def save(found: dict[str, Any], figure: Figure, out: Path) -> None:
    """The figure alone, or a page around it."""
    if out.suffix != ".html":
        figure.savefig(out, dpi=160)
        return
    from descend.report.exhibits import table as html_table
    from descend.report.page import page

    file = io.StringIO()
    figure.savefig(file, format="svg")
    drawing = file.getvalue()
    columns, facts = split(found["numbers"])
    body = (
        f'<header><h1>{escape(found["lab"])}</h1><span class="state {found["verdict"]}">{found["verdict"]}</span>'
        f"<p>{escape(found['claim'])}</p></header>"
        f'<section class="card paper">{drawing[drawing.index("<svg") :]}</section>'
        '<section class="card"><h2>Measured</h2>'
        f"{html_table({'columns': [title(name) for name in columns], 'rows': rows_of(columns)})}</section>"
        '<section class="card"><h2>Facts</h2>'
        f"{html_table({'columns': ['', ''], 'rows': [[title(k), v] for k, v in facts.items()]})}</section>"
        f"<footer>seed {found['seed']}, budget {found['budget']:g} s</footer>"
    )
    out.write_text(page(found["lab"], body), encoding="utf-8")
