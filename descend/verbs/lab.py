"""lab: test a claim of the books by measurement, and say whether it is supported, refuted or open."""

from __future__ import annotations

import io
import json as json_format
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

from descend import labs
from descend.errors import Mistake
from descend.labs._examine import examine, examine_seeds
from descend.verbs.flags import read_seconds
from descend.verbs.table import format_table, paint_state

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def lab(name: str, seed: int = 0, budget: float | None = None, seeds: int = 1) -> dict[str, Any]:
    """Test a claim of the books by measurement.

    Args:
        name: the lab.
        seed: of everything random in it.
        budget: how much work to spend on a seed, in seconds of one core; None: what the lab needs.
        seeds: how many seeds to measure, from `seed` on; a verdict that counts needs 3.

    Returns:
        {"lab", "claim", "seed", "budget", "seconds", "numbers", "verdict"}. With several seeds: numbers, seconds and
        verdicts of each, their mean, spread and common verdict.
    """
    if seeds == 1:
        return examine(name, seed, budget)
    return examine_seeds(name, range(seed, seed + seeds), budget)


def command(
    name: str = "",
    /,
    *,
    seed: int = 0,
    seeds: int = 1,
    budget: str = "",
    out: Path | None = None,
    json: bool = False,
) -> None:
    """Test a claim of the books: the claim, what was measured, and the verdict.

    Without a name, list the labs.

    Args:
        name: the lab.
        seed: of everything random in it.
        seeds: how many seeds to measure, from that one on; a verdict that counts needs 3.
        budget: how much work to spend on a seed, as time of one core: 10s, 2m; by default what the lab needs.
        out: write the figure (.png, .svg) or a page with everything (.html).
        json: print JSON instead of text.

    Examples:
        descend lab
        descend lab attention-scale
        descend lab attention-scale --seeds 3
        descend lab attention-scale --budget 1m --out scale.html
    """
    if not name:
        claims = [{"lab": known, "claim": labs.claim(known)} for known in labs.names()]
        print(json_format.dumps(claims, indent=1) if json else "\n\n".join(map(format_claim, claims)))
        return
    if out is not None:
        check_out(out)
    if seeds < 1:
        raise Mistake(f"--seeds {seeds}: at least 1")
    found = lab(name, seed, read_seconds(budget) if budget else None, seeds)
    print(json_format.dumps(found, indent=1) if json else format_lab(found))
    if out is not None:
        shown = found if seeds == 1 else {**found, "seed": seed, "numbers": found["numbers"][0]}
        save_figure(shown, labs.open_lab(name).figure(shown["numbers"]), out)
        if not json:
            print(f"\nwritten: {out}")


def format_claim(lab: dict[str, str]) -> str:
    return lab["lab"] + "\n" + textwrap.fill(lab["claim"], 78, initial_indent="  ", subsequent_indent="  ")


def format_lab(found: dict[str, Any]) -> str:
    """Claim, table, facts and verdict as text."""
    tables, facts = split_numbers(join_seeds(found) if "seeds" in found else found["numbers"])
    parts = [textwrap.fill(f"Claim: {found['claim']}", 80)]
    parts += [format_table([spell_name(name) for name in columns], list_rows(columns)) for columns in tables]
    if facts:
        lines = (f"{spell_name(name)}: {v if isinstance(v, str) else f'{v:.4g}'}" for name, v in facts.items())
        parts.append("\n".join(lines))
    if "seeds" in found:
        each = zip(found["seeds"], found["seconds"], found["verdicts"], strict=True)
        parts.append("\n".join(paint_state(f"seed {seed}, {took:.1f} s: {said}") for seed, took, said in each))
        parts.append(f"budget {found['budget']:g} s per seed, took {sum(found['seconds']):.1f} s of one core")
    else:
        parts.append(f"budget {found['budget']:g} s, took {found['seconds']:.1f} s of one core")
    return "\n\n".join([*parts, paint_state(f"Verdict: {found['verdict']}")])


def join_seeds(found: dict[str, Any]) -> dict[str, Any]:
    """The numbers of the first seed, with mean ± spread in place of each one that the seeds do not share."""

    def join(first: Any, mean: Any, spread: Any) -> Any:
        if isinstance(mean, list):
            return [join(*part) for part in zip(first, mean, spread, strict=True)]
        return f"{mean:.3g} ± {spread:.1g}" if isinstance(mean, float) and spread else first

    return {
        name: join(first, found["mean"][name], found["spread"][name]) for name, first in found["numbers"][0].items()
    }


def split_numbers(numbers: dict[str, Any]) -> tuple[list[dict[str, list[Any]]], dict[str, float | str]]:
    """The columns of each table, one table for every length of column, and the single numbers."""
    tables: dict[int, dict[str, list[Any]]] = {}
    for name, value in numbers.items():
        if isinstance(value, list) and not any(isinstance(cell, list | dict) for cell in value):
            tables.setdefault(len(value), {})[name] = value
    return list(tables.values()), {k: v for k, v in numbers.items() if isinstance(v, int | float | str)}


def list_rows(columns: dict[str, list[Any]]) -> list[list[Any]]:
    return [list(row) for row in zip(*columns.values(), strict=True)]


def spell_name(name: str) -> str:
    return name if name == "d_k" else name.replace("_", " ")


def check_out(out: Path) -> None:
    """Refuse a place that cannot be written to before the work is done, not after."""
    if out.suffix not in (".png", ".svg", ".html"):
        raise Mistake(f"--out {out}: the name must end in .png, .svg or .html")
    if not out.parent.is_dir():
        raise Mistake(f"--out {out}: there is no folder {out.parent}")


def save_figure(found: dict[str, Any], figure: Figure, out: Path) -> None:
    """The figure alone, or a page around it."""
    if out.suffix != ".html":
        figure.savefig(out, dpi=160)
        return
    from descend.report.lab import make_lab_page

    file = io.StringIO()
    figure.savefig(file, format="svg")
    tables, facts = split_numbers(found["numbers"])
    named = [{spell_name(name): column for name, column in columns.items()} for columns in tables]
    single = {spell_name(name): value for name, value in facts.items()}
    out.write_text(make_lab_page(found, file.getvalue(), named, single), encoding="utf-8")
