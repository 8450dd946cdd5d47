"""The report of a run: one self-contained page with its figures, curves, exhibits, values and environment."""

from __future__ import annotations

import math
import os
from html import escape
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from descend.engine.progress import clock, short, steady
from descend.report.curves import loss_card, small_cards
from descend.report.exhibits import section
from descend.report.history import History, number, read
from descend.report.style import CSS, SCRIPT

if TYPE_CHECKING:
    from descend.engine.protocol import Exhibit

ORDER = ("model", "data", "optim", "schedule", "loop")  # as a recipe is written


def write(run: Path, exhibits: list[Exhibit]) -> Path:
    """Write report.html into the folder of a run, from its files and the exhibits, and return its path."""
    history = read(Path(run))
    body = [
        heading(history),
        warnings(history),
        figures(history),
        loss_card(history),
        small_cards(history),
        f'<div class="exhibits">{"".join(map(section, exhibits))}</div>' if exhibits else "",
        values(history),
        course(history),
    ]
    path = Path(run) / "report.html"
    aside = path.with_name(".report.html")
    aside.write_text(page(history.name, "".join(body)), encoding="utf-8")
    os.replace(aside, path)
    return path


def page(title: str, body: str) -> str:
    """A whole page around a body."""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{CSS}</style></head>"
        f"<body><main>{body}</main><script>{SCRIPT}</script></body></html>\n"
    )


def heading(history: History) -> str:
    about = history.recipe.get("about")
    said = f"<p>{escape(str(about))}</p>" if about else ""
    state = history.state
    # The report is written by the run itself, at its end: a lock still held does not mean that it goes on.
    ended = any(line["event"] not in ("resumed", "warning") and line["step"] >= history.step for line in history.events)
    state = "interrupted" if state == "running" and ended else state
    return f'<header><h1>{escape(history.name)}</h1><span class="state {state}">{state}</span>{said}</header>'


def warnings(history: History) -> str:
    """What went wrong, where it is seen first."""
    said = [str(line["fault"]) for line in history.events if line.get("fault")]
    said += [f"step {line['step']:,}: {line['said']}" for line in history.events if line.get("said")]
    if history.damaged:
        n, text = history.damaged[0]
        many = f"{len(history.damaged)} lines" if len(history.damaged) > 1 else "one line"
        said.append(
            f"metrics.jsonl: {many} could not be read and {'are' if len(history.damaged) > 1 else 'is'}"
            f" left out; the first is line {n}: {text[:100]}"
        )
    return "".join(f'<p class="warning">{escape(text)}</p>' for text in said)


def figures(history: History) -> str:
    """The headline: what a reader wants to know first."""
    _, score = history.watch
    found: list[tuple[str, str, str]] = []
    if history.best is not None:
        step, value = history.best
        found.append((steady(value), "", f"best validation {score}, step {step:,}"))
        last = number(history.valid[-1]["valid"].get(score))
        if history.valid[-1]["step"] != step:
            found.append((steady(last), "", f"final validation {score}"))
    elif history.losses:
        found.append((steady(number(history.train[-1].get(history.losses[0]))), "", "last training loss"))
    for line in history.test[-1:]:
        found += [(steady(number(value)), "", f"test {name}") for name, value in line["test"].items()]
    total = f" / {history.steps:,}" if history.steps and history.steps != history.step else ""
    found.append((f"{history.step:,}", total, "steps"))
    found.append((clock(history.seconds), "", "training time"))
    rates = [value for value in history.series("rate")[1] if math.isfinite(value)]
    if rates:
        found.append((short(median(rates)), "", f"{history.unit} per second"))
    if isinstance(history.facts.get("parameters"), int):
        count = history.facts["parameters"]
        found.append((f"{count:,}" if count < 1e7 else short(count), "", "parameters"))
    cells = (f"<div><b>{escape(a)}<small>{escape(b)}</small></b><span>{escape(c)}</span></div>" for a, b, c in found)
    return f'<div class="figures">{"".join(cells)}</div>'


def values(history: History) -> str:
    """The configuration, a table for each part of the recipe."""
    tree = history.recipe.get("values")
    tree = tree if isinstance(tree, dict) else {}
    alone = {key: value for key, value in tree.items() if not isinstance(value, dict) and key != "about" and value}
    groups = sorted((k for k in tree if isinstance(tree[k], dict)), key=lambda k: ORDER.index(k) if k in ORDER else 9)
    parts = ([("recipe", alone)] if alone else []) + [(k, tree[k]) for k in groups]
    parts += [("facts", history.facts)] if history.facts else []
    return f'<section class="card"><h2>Configuration</h2>{tables(parts)}</section>' if parts else ""


def course(history: History) -> str:
    """Environment, timing and events."""
    lines = history.train
    gaps = [
        (b["time"] - a["time"]) / (b["step"] - a["step"])
        for a, b in pairwise(lines)
        if "time" in a and "time" in b and b["step"] > a["step"]
    ]
    timing: dict[str, Any] = {"started": history.recipe["started"]} if "started" in history.recipe else {}
    timing |= {"training time": clock(history.seconds), "evaluations": len(history.valid)}
    if gaps:
        step = median(gaps)
        timing["one step (median)"] = f"{step:.3g} s" if step >= 1 else f"{1000 * step:.3g} ms"
    if history.best is not None:
        reached = [line["time"] for line in history.valid if line["step"] == history.best[0] and "time" in line]
        timing |= {"time to the best score": clock(reached[0])} if reached else {}
    events = {f"step {line['step']:,}": line["event"] for line in history.events if line["event"] != "warning"}
    environment = history.recipe.get("environment")
    environment = dict(environment) if isinstance(environment, dict) else {}
    environment |= {"descend": history.recipe["descend"]} if "descend" in history.recipe else {}
    parts = [("environment", environment), ("timing", timing), ("events", events)]
    shown = tables([(name, part) for name, part in parts if part])
    return f'<section class="card"><h2>Environment and timing</h2>{shown}</section>'


def tables(parts: list[tuple[str, dict[str, Any]]]) -> str:
    """Small tables of names and values, side by side; the class of a part stands beside its name."""
    cells = []
    for name, part in parts:
        kind = str(part.get("class", "")).rpartition(":")[2]
        lines = flat({key: value for key, value in part.items() if key != "class"})
        rows = "".join(f"<tr><td>{escape(k)}</td><td>{escape(shown(v))}</td></tr>" for k, v in lines.items())
        cells.append(f"<div><h3>{escape(str(name))} <small>{escape(kind)}</small></h3><table>{rows}</table></div>")
    return f'<div class="values">{"".join(cells)}</div>'


def flat(tree: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """{"a": {"b": 1}} -> {"a.b": 1}"""
    found: dict[str, Any] = {}
    for key, value in tree.items():
        found |= flat(value, f"{prefix}{key}.") if isinstance(value, dict) and value else {f"{prefix}{key}": value}
    return found


def shown(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "none"}[value]
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.6g}".replace("e-0", "e-") if isinstance(value, float) else str(value) or "–"
