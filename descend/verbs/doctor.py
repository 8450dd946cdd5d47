"""descend doctor: what is wrong with a training run, from measured signs, and what to change."""

from __future__ import annotations

import json as json_format
import textwrap
from dataclasses import asdict
from html import escape
from pathlib import Path
from typing import Any

from descend.diagnosis.examine import Examination, examine
from descend.diagnosis.signs import Finding
from descend.engine.run import Run
from descend.errors import Mistake
from descend.verbs.table import table

WIDTH = 100


def doctor(run: str | Path) -> Examination:
    """The findings on a run, causes first; none where it is healthy."""
    return examine(Run.open(run))


def command(run: str, /, *, json: bool = False, html: Path | None = None) -> None:
    """Say what is wrong with a run: the finding, the numbers that show it, the equation, the change to make.

    The run is built again with its last weights, and a few training batches go through it forward and backward. Its
    folder is not changed.

    Args:
        run: the run's folder
        json: print JSON instead of text
        html: write a page with the findings

    Examples:
        descend doctor runs/demo
        descend doctor runs/demo --json
        descend doctor runs/demo --html findings.html
    """
    if html is not None and not html.parent.is_dir():
        raise Mistake(f"--html {html}: there is no folder {html.parent}")
    found = doctor(run)
    print(json_format.dumps(as_json(run, found), indent=1) if json else told(run, found))
    if html is not None:
        html.write_text(as_page(run, found), encoding="utf-8")
        if not json:
            print(f"written: {html}")


def as_json(run: str, found: Examination) -> dict[str, Any]:
    """Findings, what follows from them, notes, and the measurements by layer. What is not a number is null."""
    signs = found.signs
    measured = {"layers": [asdict(layer) for layer in signs.layers], "units": [asdict(units) for units in signs.units]}
    return {
        "run": run,
        "healthy": not found.findings,
        "findings": [asdict(finding) for finding in found.findings],
        "follows": found.follows,
        "notes": list(found.notes),
        **{
            kind: [{name: None if value != value else value for name, value in row.items()} for row in rows]
            for kind, rows in measured.items()
        },
    }


def told(run: str, found: Examination) -> str:
    """A table of the findings, then each with its evidence."""
    signs, notes = found.signs, [f"note: {note}" for note in found.notes]
    looked = f"{len(signs.train)} training losses, {len(signs.valid)} evaluations, {len(signs.layers)} layers"
    if not found.findings:
        return "\n".join([f"{run}: nothing wrong is seen ({looked})", *notes])
    rows = [[finding.name, finding.severity] for finding in found.findings]
    parts = [table(["finding", "severity"], rows), *(entry(finding, found.follows) for finding in found.findings)]
    return "\n\n".join([*parts, *(["\n".join(notes)] if notes else [])])


def entry(finding: Finding, follows: dict[str, str]) -> str:
    """One finding in a few lines."""
    lines = [("seen", finding.evidence), ("because", finding.equation), ("change", finding.change)]
    symptoms = [name for name, cause in follows.items() if cause == finding.name]
    lines += [("explains", ", ".join(symptoms))] if symptoms else []
    space = " " * 12
    wrapped = [
        textwrap.fill(text, WIDTH, initial_indent=f"  {title:<10}", subsequent_indent=space, break_on_hyphens=False)
        for title, text in lines
    ]
    return "\n".join([finding.name, *wrapped])


def as_page(run: str, found: Examination) -> str:
    """The findings as a page in the style of the report."""
    from descend.report.page import page

    cards = [
        f'<section class="card"><h2>{escape(finding.name)} <small>{escape(finding.severity)}</small></h2>'
        f'<p class="warning">{escape(finding.evidence)}</p><pre>{escape(finding.equation)}</pre>'
        f"<p>{escape(finding.change)}</p></section>"
        for finding in found.findings
    ]
    notes = "".join(f'<p class="note">{escape(note)}</p>' for note in found.notes)
    body = "".join(cards) or '<section class="card"><p>Nothing wrong is seen.</p></section>'
    return page(f"doctor: {run}", f"<header><h1>{escape(run)}</h1></header>{body}{notes}")
