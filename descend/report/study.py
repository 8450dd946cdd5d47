"""The page of a study: the best values and their command, how the search went, what mattered, every trial."""

from __future__ import annotations

import os
from html import escape
from pathlib import Path
from typing import Any

from descend.engine.progress import clock, steady
from descend.report.decades import decades
from descend.report.exhibits import legend
from descend.report.page import page, shown
from descend.report.svg import Series, chart

CURVES = 60  # trials whose curves are drawn


def write_study(folder: Path, found: dict[str, Any]) -> Path:
    """Write report.html into the folder of a study, from what `descend tune --json` prints."""
    body = [heading(found), figures(found), best_card(found), history_card(found), importance_card(found)]
    body += [slices(found), curves_card(found), trials_card(found)]
    path = folder / "report.html"
    aside = path.with_name(".report.html")
    aside.write_text(page(f"{found['recipe']}: search", "".join(body)), encoding="utf-8")
    os.replace(aside, path)
    return path


def card(title: str, body: str, note: str = "") -> str:
    said = f'<p class="note">{escape(note)}</p>' if note else ""
    return f'<section class="card"><h2>{escape(title)}</h2>{said}{body}</section>'


def score_name(found: dict[str, Any]) -> str:
    return str(found["watch"].split()[1])


def heading(found: dict[str, Any]) -> str:
    state = "finished" if found["state"] == "finished" else "interrupted"
    names = ", ".join(d["name"] for d in found["search"])
    said = f"A search over {names}: sampler {found['sampler']}, pruner {found['pruner']}, seed {found['seed']}."
    return (
        f'<header><h1>{escape(found["recipe"])}</h1><span class="state {state}">{state}</span>'
        f"<p>{escape(said)} Validation scores select; the test data was not read.</p></header>"
    )


def of_state(found: dict[str, Any], state: str) -> list[dict[str, Any]]:
    return [t for t in found["trials"] if t["state"] == state]


def figures(found: dict[str, Any]) -> str:
    """The headline."""
    best, trials = found["best"], found["trials"]
    cells = (
        [(steady(best["score"]), f"best validation {score_name(found)}, trial {best['number']:03d}")] if best else []
    )
    cells += [(str(len(trials)), "trials")]
    cells += [(str(len(of_state(found, s))), s) for s in ("complete", "pruned", "failed") if of_state(found, s)]
    cells.append((clock(sum(t.get("seconds", 0.0) for t in trials)), "training time"))
    inner = "".join(f"<div><b>{escape(a)}</b><span>{escape(b)}</span></div>" for a, b in cells)
    return f'<div class="figures">{inner}</div>'


def best_card(found: dict[str, Any]) -> str:
    """The values to use, and the command."""
    best = found["best"]
    if not best:
        return card("Best trial", '<p class="empty">No trial is complete yet.</p>')
    rows = "".join(f"<tr><td>{escape(k)}</td><td>{escape(shown(v))}</td></tr>" for k, v in best["values"].items())
    table = f'<div class="values"><div><table>{rows}</table></div></div>'
    run = f'<p class="note">Its run is <a href="{escape(best["run"])}/report.html">{escape(best["run"])}</a>.</p>'
    command = f"<pre>{escape(found['command'])}</pre>" if found["command"] else ""
    return card("Best trial", command + table + run, "Train with these values:" if command else "")


def history_card(found: dict[str, Any]) -> str:
    """The score of every trial, and the best so far."""
    complete, pruned = of_state(found, "complete"), scored(of_state(found, "pruned"))
    choose = max if found["watch"].startswith("max") else min
    best: list[float] = []
    for t in complete:
        best.append(choose(best[-1], t["score"]) if best else t["score"])
    numbers = [float(t["number"]) for t in complete]
    series = [Series("best so far", numbers, best, "line", 2)] if complete else []
    series += clouds(complete, pruned, lambda t: float(t["number"]))
    return card("History", legend(series) + large(chart(series, (1000, 300), ("trial", score_name(found)))))


def scored(trials: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [t for t in trials if t["score"] is not None]


def clouds(complete: list[dict[str, Any]], pruned: list[dict[str, Any]], x: Any) -> list[Series]:
    """Complete and pruned trials as points."""
    pairs = [("complete", complete, 0), ("pruned", pruned, 1)]
    return [
        Series(label, [x(t) for t in trials], [t["score"] for t in trials], "dots", colour)
        for label, trials, colour in pairs
        if trials
    ]


def importance_card(found: dict[str, Any]) -> str:
    """A bar for each flag."""
    if not found["importance"]:
        return ""
    rows = "".join(
        f'<tr><td>{escape(name)}</td><td style="width:70%"><svg viewBox="0 0 400 14" role="img">'
        f'<rect width="{400 * share:.1f}" height="14" rx="3" style="fill: var(--c0)"/></svg></td>'
        f'<td class="number">{share:.0%}</td></tr>'
        for name, share in found["importance"].items()
    )
    note = "The share of the scores' variance that each flag explains (fANOVA over the complete trials)."
    return card("Importance", f'<table style="width:100%">{rows}</table>', note)


def slices(found: dict[str, Any]) -> str:
    """The score against each flag."""
    complete, pruned = of_state(found, "complete"), scored(of_state(found, "pruned"))
    if not complete and not pruned:
        return ""
    cards = [
        f'<section class="card"><h3>{escape(d["name"])}</h3>{one_slice(found, d)}</section>' for d in found["search"]
    ]
    return f'<div class="small row2">{"".join(cards)}</div>'


def one_slice(found: dict[str, Any], d: dict[str, Any]) -> str:
    """One flag: complete and pruned trials, the best with a ring."""
    name, places = d["name"], d.get("choices")

    def x(trial: dict[str, Any]) -> float:
        value = trial["values"][name]
        return float(places.index(value) if places is not None else value)

    series = clouds(of_state(found, "complete"), scored(of_state(found, "pruned")), x)
    best = found["best"]
    marks = [(x(best), best["score"], steady(best["score"]))] if best else []
    named = [str(p) for p in places] if places is not None else None
    return large(decades(series, (490, 220), ("", score_name(found)), bool(d.get("log")), named, marks))


def large(svg: str) -> str:
    """Dots for a few trials, where the chart draws them small enough for thousands."""
    return svg.replace('r="2.2"', 'r="3.8"')


def curves_card(found: dict[str, Any]) -> str:
    """The validation score of every trial as it trained; the best in colour."""
    best = found["best"]["number"] if found["best"] else -1
    trials = [t for t in found["trials"] if t["scores"]]
    trials = [t for t in trials if t["number"] != best][: CURVES - 1] + [t for t in trials if t["number"] == best]
    series = [
        Series(
            f"trial {t['number']:03d}",
            [float(step) for step, _ in t["scores"]],
            [value for _, value in t["scores"]],
            "line" if t["number"] == best else "faint",
            {"pruned": 1, "failed": 4}.get(t["state"], 2 if t["number"] == best else 0),
        )
        for t in trials
    ]
    if not series:
        return ""
    note = "Blue: complete, orange: pruned. Green: the best trial."
    return card("Curves", chart(series, (1000, 300), ("step", f"validation {score_name(found)}")), note)


def trials_card(found: dict[str, Any]) -> str:
    """Every trial, the best first."""
    sign = -1 if found["watch"].startswith("max") else 1
    order = {"complete": 0, "pruned": 1}
    trials = sorted(found["trials"], key=lambda t: (order.get(t["state"], 2), sign * (t["score"] or 0), t["number"]))
    names = [d["name"] for d in found["search"]]
    head = "".join(f"<th>{escape(h)}</th>" for h in ["trial", score_name(found), *names, "step", "time", "state"])
    rows = []
    for t in trials:
        score = "" if t["score"] is None else steady(t["score"])
        state = escape(t["state"]) + (f": {escape(t['fault'])}" if t.get("fault") else "")
        values = "".join(f"<td>{escape(shown(t['values'][name]))}</td>" for name in names)
        link = f'<a href="{escape(t["run"])}/report.html">{t["number"]:03d}</a>'
        rows.append(
            f"<tr><td>{link}</td><td>{score}</td>{values}<td>{t.get('step', '')}</td>"
            f"<td>{clock(t.get('seconds', 0.0))}</td><td>{state}</td></tr>"
        )
    return card("Trials", f'<div class="wide"><table><tr>{head}</tr>{"".join(rows)}</table></div>')
