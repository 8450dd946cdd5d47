"""The report of a run: one self-contained page with its figures, curves, exhibits, values and environment."""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from descend.engine.progress import clock, short, steady
from descend.report.curves import draw_course, draw_losses, draw_measures, draw_terms
from descend.report.exhibits import make_section
from descend.report.history import History, as_number, read_history
from descend.web.markup import Html, html, join
from descend.web.page import make_page, write_page
from descend.web.parts import make_card, make_figures, make_header, make_pairs, make_warning

if TYPE_CHECKING:
    from descend.contracts import Exhibit

ORDER = ("model", "data", "optim", "schedule", "loop")  # as a recipe is written


def write_report(run: Path, exhibits: list[Exhibit]) -> Path:
    """Write report.html into the folder of a run, from its files and the exhibits, and return its path."""
    history = read_history(Path(run))
    body = [
        make_heading(history),
        make_warnings(history),
        make_headline(history),
        draw_losses(history),
        draw_terms(history),
        draw_measures(history),
        draw_course(history),
        html('<div class="exhibits">{}</div>', [make_section(e) for e in exhibits]) if exhibits else Html(),
        list_values(history),
        list_environment(history),
    ]
    return write_page(Path(run) / "report.html", make_page(history.name, *body))


def make_heading(history: History) -> Html:
    state = history.state
    # The report is written by the run itself, at its end: a lock still held does not mean that it is still running.
    ended = any(line["event"] not in ("resumed", "warning") and line["step"] >= history.step for line in history.events)
    state = "interrupted" if state == "running" and ended else state
    return make_header(history.name, str(history.recipe.get("about") or ""), state)


def make_warnings(history: History) -> Html:
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
    return join(make_warning(text) for text in said)


def make_headline(history: History) -> Html:
    """What a reader wants to know first."""
    _, score = history.watch
    found: list[tuple[str, str, str]] = []
    if history.best is not None:
        step, value = history.best
        found.append((steady(value), "", f"best validation {score}, step {step:,}"))
        last = as_number(history.valid[-1]["valid"].get(score))
        if history.valid[-1]["step"] != step:
            found.append((steady(last), "", f"final validation {score}"))
    elif history.losses:
        found.append((steady(as_number(history.train[-1].get(history.losses[0]))), "", "last training loss"))
    for line in history.test[-1:]:
        found += [(steady(as_number(value)), "", f"test {name}") for name, value in line["test"].items()]
    total = f" / {history.steps:,}" if history.steps and history.steps != history.step else ""
    found.append((f"{history.step:,}", total, "steps"))
    found.append((clock(history.seconds), "", "training time"))
    rates = [value for value in history.series("rate")[1] if math.isfinite(value)]
    if rates:
        found.append((short(median(rates)), "", f"{history.unit} per second"))
    if isinstance(history.facts.get("parameters"), int):
        count = history.facts["parameters"]
        found.append((f"{count:,}" if count < 1e7 else short(count), "", "parameters"))
    return make_figures(found)


def list_values(history: History) -> Html:
    """The configuration, a table for each part of the recipe."""
    tree = history.recipe.get("values")
    tree = tree if isinstance(tree, dict) else {}
    alone = {key: value for key, value in tree.items() if not isinstance(value, dict) and key != "about" and value}
    groups = sorted((k for k in tree if isinstance(tree[k], dict)), key=lambda k: ORDER.index(k) if k in ORDER else 9)
    parts = ([("recipe", alone)] if alone else []) + [(k, tree[k]) for k in groups]
    parts += [("facts", history.facts)] if history.facts else []
    return make_card("Configuration", list_parts(parts)) if parts else Html()


def list_environment(history: History) -> Html:
    """Environment, timing and events."""
    gaps = [
        (b["time"] - a["time"]) / (b["step"] - a["step"])
        for a, b in pairwise(history.train)
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
    return make_card("Environment and timing", list_parts([(name, part) for name, part in parts if part]))


def list_parts(parts: list[tuple[str, dict[str, Any]]]) -> Html:
    """Small tables of names and values; the class of a part stands beside its name."""
    shown = []
    for name, part in parts:
        kind = str(part.get("class", "")).rpartition(":")[2].rpartition(".")[2]
        lines = flatten({key: value for key, value in part.items() if key != "class"})
        shown.append((str(name), kind, {key: format_value(value) for key, value in lines.items()}))
    return make_pairs(shown)


def flatten(tree: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """{"a": {"b": 1}} -> {"a.b": 1}"""
    found: dict[str, Any] = {}
    for key, value in tree.items():
        found |= flatten(value, f"{prefix}{key}.") if isinstance(value, dict) and value else {f"{prefix}{key}": value}
    return found


def format_value(value: Any) -> str:
    """A value of a recipe as a person writes it."""
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "none"}[value]
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.6g}".replace("e-0", "e-") if isinstance(value, float) else str(value) or "–"
