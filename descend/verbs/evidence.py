"""What a lab found, as text: the claim, the numbers, each prediction beside what was measured, the verdict."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable
from typing import Any

from descend.catalog.systems import entries
from descend.verbs.table import format_table, paint_state

WIDTH = 80


def format_lab(found: dict[str, Any]) -> str:
    """Claim, table, facts, evidence and verdict as text."""
    tables, facts = split_numbers(join_seeds(found))
    parts = [fill(f"Claim: {found['claim']}")]
    if found.get("printed"):
        parts.append(fill(f"As printed ({found['where']}): {found['printed']}"))
    parts += [format_table([spell_name(name) for name in columns], list_rows(columns)) for columns in tables]
    if facts:
        lines = (f"{spell_name(name)}: {v if isinstance(v, str) else f'{v:.4g}'}" for name, v in facts.items())
        parts.append("\n".join(lines))
    parts += format_evidence(found)
    each = zip(found["seeds"], found["seconds"], found["verdicts"], strict=True)
    parts.append("\n".join(paint_state(f"seed {seed}, {took:.1f} s: {said}") for seed, took, said in each))
    parts += [fill(f"seed {seed}: {why}") for seed, why in zip(found["seeds"], found["why"], strict=True) if why]
    parts += [fill(f"{title}: {found[key]}") for key, title in SAID.items() if found.get(key)]
    parts.append(format_cost(found))
    return "\n\n".join([*parts, *format_verdict(found)])


SAID = {"scope": "Scope", "retuned": "Retuned after a first look"}


def fill(text: str) -> str:
    return textwrap.fill(text, WIDTH)


def format_evidence(found: dict[str, Any]) -> list[str]:
    """For predictions, controls and the printed form: a table of the seeds, and one of the intervals."""
    said = []
    titles = {"predictions": "", "controls": "Controls", "printed_predictions": "The form that is printed"}
    for key, title in titles.items():
        told = found.get(key)
        if not told:
            continue
        head = ["effect", *(f"seed {seed}" for seed in found["seeds"])]
        seeds = format_table(head, [[one["effect"], *(shorten(v) for v in one["values"])] for one in told])
        rows = [
            [one["effect"], one["predicted"], shorten(one["mean"]), spell_interval(one), one["held"], one["verdict"]]
            for one in told
        ]
        judged = format_table(["effect", "predicted", "mean", "95% interval", "held in", ""], rows)
        said += [*([title] if title else []), seeds, judged]
    return said


def shorten(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"


def spell_interval(told: dict[str, Any]) -> str:
    return " .. ".join(map(shorten, told["interval"]))


def format_cost(found: dict[str, Any]) -> str:
    """What was allowed and what was used."""
    asked, spent = found["asked"], found["spent"]
    allowed = (
        f"budget {asked:g} s in all, {found['budget']:.3g} s per seed"
        if asked is not None
        else (f"budget {found['budget']:g} s per seed")
    )
    kept = f"; {found['kept']} measured before" if found.get("kept") else ""
    return f"{allowed}, took {spent:.1f} s of one core{kept}"


def format_verdict(found: dict[str, Any]) -> list[str]:
    """The verdict, and why it is open."""
    lines = []
    wanted = len(found["seeds"]) + len(found["missing"])
    if found["missing"]:
        lines.append(f"not measured, the budget was spent: seed {', '.join(map(str, found['missing']))}")
    if found["needs"] or found["missing"]:
        each = found["needs"] or max(found["seconds"])
        total = math.ceil(1.2 * max(wanted, found["least"]) * each)
        lines.append(f"the budget is too small: it needs about {each:.3g} s a seed, --budget {total}s")
    elif wanted < found["least"]:
        lines.append(f"a verdict needs {found['least']} seeds")
    if found.get("printed_verdict"):
        lines.append(paint_state(f"Verdict on the printed form: {found['printed_verdict']}"))
    return [*(["\n".join(lines)] if lines else []), paint_state(f"Verdict: {found['verdict']}")]


def place(ids: list[str]) -> str:
    """Where entries stand in the books: "MF 22.3, VOM 9.1 (MF-K.4, VOM-C.2)"."""
    known = [entries()[one] for one in ids if one in entries()]
    sections = dict.fromkeys(f"{book} {section}" for entry in known for book, section in entry.places)
    return f"{'; '.join(sections)} ({', '.join(ids)})" if ids else ""


def join_seeds(found: dict[str, Any]) -> dict[str, Any]:
    """The numbers of the first seed, with mean ± spread in place of each one that the seeds do not share."""

    def join(first: Any, mean: Any, spread: Any) -> Any:
        if isinstance(mean, list):
            return [join(*part) for part in zip(first, mean, spread, strict=True)]
        return f"{mean:.3g} ± {spread:.1g}" if isinstance(mean, float) and spread else first

    first: dict[str, Any] = next((numbers for numbers in found["numbers"] if numbers is not None), {})
    return {name: join(value, found["mean"].get(name), found["spread"].get(name)) for name, value in first.items()}


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


def name_columns(
    numbers: dict[str, Any], spell: Callable[[str], str] = spell_name
) -> tuple[list[dict[str, list[Any]]], dict[str, float | str]]:
    """Tables and facts with names as they are read."""
    tables, facts = split_numbers(numbers)
    named = [{spell(name): column for name, column in columns.items()} for columns in tables]
    return named, {spell(name): value for name, value in facts.items()}
