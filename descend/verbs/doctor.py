"""descend doctor: what is wrong with a training run, from measured signs, and what to change."""

from __future__ import annotations

import json as json_format
import textwrap
from dataclasses import asdict
from pathlib import Path
from typing import Any

from descend.diagnosis.examine import Examination, examine
from descend.diagnosis.signs import Finding
from descend.engine.run import Run
from descend.errors import Mistake
from descend.own_code import use_code
from descend.verbs.table import format_table

WIDTH = 100


def doctor(run: str | Path, checkpoint: str | int = "last") -> Examination:
    """What is wrong with a training run.

    Args:
        run: the run's folder.
        checkpoint: whose weights are examined: last (where the training stands), best or a step.

    Returns:
        The findings, causes first; none where the run is healthy.
    """
    found = Run.open(run)
    if origin := found.recipe.get("compressed"):
        raise Mistake(f"{run} was made by descend compress and holds no training to look at; descend doctor {origin}")
    return examine(found, checkpoint)


def command(
    run: str, /, *, checkpoint: str = "last", code: str = "", json: bool = False, html: Path | None = None
) -> None:
    """Say what is wrong with a run: the finding, the numbers that show it, the equation, the change to make.

    The run is built again with its weights, and a few training batches go through it forward and backward. Its
    folder is not changed.

    Args:
        run: the run's folder.
        checkpoint: whose weights are examined: last (where the training stands), best or a step.
        code: the file of a recipe or model of your own, where it is not found by its name.
        json: print JSON instead of text.
        html: write a page with the findings.

    Examples:
        descend doctor runs/demo
        descend doctor runs/demo --json
        descend doctor runs/demo --html findings.html
    """
    use_code(code)
    if html is not None and not html.parent.is_dir():
        raise Mistake(f"--html {html}: there is no folder {html.parent}")
    found = doctor(run, checkpoint)
    print(json_format.dumps(describe_examination(run, found), indent=1) if json else format_examination(run, found))
    if html is not None:
        from descend.diagnosis.page import make_findings_page

        html.write_text(make_findings_page(run, found), encoding="utf-8")
        if not json:
            print(f"written: {html}")


def describe_examination(run: str, found: Examination) -> dict[str, Any]:
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


def format_examination(run: str, found: Examination) -> str:
    """A table of the findings, then each with its evidence."""
    signs, notes = found.signs, [f"note: {note}" for note in found.notes]
    looked = f"{len(signs.train)} training losses, {len(signs.valid)} evaluations, {len(signs.layers)} layers"
    if not found.findings:
        return "\n".join([f"{run}: no problem found ({looked})", *notes])
    rows = [[finding.name, finding.severity] for finding in found.findings]
    parts = [
        format_table(["finding", "severity"], rows),
        *(format_finding(finding, found.follows) for finding in found.findings),
    ]
    return "\n\n".join([*parts, *(["\n".join(notes)] if notes else [])])


def format_finding(finding: Finding, follows: dict[str, str]) -> str:
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
