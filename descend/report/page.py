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
from descend.report.scores import LEADING, draw_scores, format_score, spell
from descend.web.markup import Html, html, join
from descend.web.page import make_page, write_page
from descend.web.parts import make_card, make_figures, make_header, make_pairs, make_warning

if TYPE_CHECKING:
    from descend.contracts import Exhibit

OF_RECIPE = ("about", "parameters", "takes")  # what is said of a recipe with its own data, not of this run
SHOWN = 20  # items of a list
ORDER = ("model", "data", "optim", "schedule", "loop")  # as a recipe is written


def write_report(run: Path, exhibits: list[Exhibit]) -> Path:
    """Write report.html into the folder of a run, from its files and the exhibits, and return its path."""
    history = read_history(Path(run))
    body = [
        make_heading(history),
        make_warnings(history),
        make_headline(history),
        draw_scores(history),
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
        if history.valid[-1]["step"] != step and steady(last) != steady(value):
            found.append((steady(last), "", f"final validation {score}"))
    elif history.losses:
        found.append((steady(as_number(history.train[-1].get(history.losses[0]))), "", "last training loss"))
    asked = [name for name in LEADING if name in history.best_scores] if score == "loss" else []
    for name in [*asked, score][:1]:
        if name != score and name not in history.tested:
            found.append((format_score(history.best_scores[name]), "", f"validation {spell(name)}"))
        elif name in history.tested:
            found.append((format_score(history.tested[name]), "", f"test {spell(name)}"))
    total = f" / {history.steps:,}" if history.steps and history.steps != history.step else ""
    found.append((f"{history.step:,}", total, "steps"))
    found.append((format_time(history.seconds), "", "training time"))
    rates = [value for value in history.series("rate")[1] if math.isfinite(value)]
    if rates:
        found.append((short(median(rates)), "", f"{history.unit} per second"))
    if isinstance(history.facts.get("parameters"), int):
        count = history.facts["parameters"]
        found.append((f"{count:,}" if count < 1e7 else short(count), "", "parameters"))
    return make_figures(found)


def format_time(seconds: float) -> str:
    """0.83 -> 0.8 s, 75 -> 1:15"""
    return f"{seconds:.1f} s" if seconds < 10 else clock(seconds)


def list_values(history: History) -> Html:
    """The configuration, a table for each part of the recipe."""
    tree = history.recipe.get("values")
    tree = tree if isinstance(tree, dict) else {}
    tree = tree | {"model": history.recipe["model"]} if isinstance(history.recipe.get("model"), dict) else tree
    data = tree.get("data")
    if isinstance(data, dict) and data.get("path"):
        tree = tree | {"data": {key: value for key, value in data.items() if key != "embedded"}}
    alone = {key: v for key, v in tree.items() if not isinstance(v, dict) and key not in OF_RECIPE and v}
    groups = sorted((k for k in tree if isinstance(tree[k], dict)), key=lambda k: ORDER.index(k) if k in ORDER else 9)
    parts = ([("recipe", alone)] if set(alone) - {"class"} else []) + [(k, tree[k]) for k in groups]
    facts = {key: value for key, value in history.facts.items() if key not in ("unit", "target")}
    parts = ([("facts of this run", facts)] if facts else []) + parts
    return make_card("Configuration", list_parts(parts)) if parts else Html()


def list_environment(history: History) -> Html:
    """Environment, timing and events."""
    gaps = [
        (b["time"] - a["time"]) / (b["step"] - a["step"])
        for a, b in pairwise(history.train)
        if "time" in a and "time" in b and b["step"] > a["step"]
    ]
    timing: dict[str, Any] = {"started": history.recipe["started"]} if "started" in history.recipe else {}
    timing |= {"training time": format_time(history.seconds), "evaluations": len(history.valid)}
    if gaps:
        step = median(gaps)
        timing["one step (median)"] = f"{step:.3g} s" if step >= 1 else f"{1000 * step:.3g} ms"
    if history.best is not None:
        reached = [line["time"] for line in history.valid if line["step"] == history.best[0] and "time" in line]
        timing |= {"time to the best score": format_time(reached[0])} if reached else {}
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
        lines = {key: value for key, value in flatten(part).items() if key.rpartition(".")[2] != "class"}
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
    if isinstance(value, list | tuple):
        more = f", … ({len(value)} in all)" if len(value) > SHOWN else ""
        return ", ".join(format_value(item) for item in value[:SHOWN]) + more or "none"
    return f"{value:.6g}".replace("e-0", "e-") if isinstance(value, float) else str(value) or "–"
