"""The page of a study: the best values and their command, how the search went, what mattered, every trial."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from descend.engine.progress import clock, steady
from descend.report.page import format_value
from descend.web.chart import Series, draw_chart, draw_choices, draw_log_chart, name_series
from descend.web.markup import Html, html
from descend.web.page import make_page, write_page
from descend.web.parts import (
    make_card,
    make_figures,
    make_header,
    make_pairs,
    make_row,
    make_small_card,
    make_table,
)

CURVES = 60  # trials whose curves are drawn
ALONE, SLICE = (1000, 240), (490, 220)  # of one slice, and of two side by side


def write_study(folder: Path, found: dict[str, Any]) -> Path:
    """Write report.html into the folder of a study, from what `descend tune --json` prints."""
    body = [make_heading(found), make_headline(found), show_best(found), draw_history(found), draw_importance(found)]
    body += [draw_slices(found), draw_curves(found), list_trials(found)]
    return write_page(folder / "report.html", make_page(f"{found['recipe']}: search", *body))


def score_name(found: dict[str, Any]) -> str:
    return str(found["watch"].split()[1])


def make_heading(found: dict[str, Any]) -> Html:
    names = ", ".join(d["name"] for d in found["search"])
    said = f"A search over {names}: sampler {found['sampler']}, pruner {found['pruner']}, seed {found['seed']}."
    said += " Trials are ranked by their validation score; the test data was not read."
    return make_header(found["recipe"], said, "finished" if found["state"] == "finished" else "interrupted")


def of_state(found: dict[str, Any], state: str) -> list[dict[str, Any]]:
    return [t for t in found["trials"] if t["state"] == state]


def make_headline(found: dict[str, Any]) -> Html:
    """The best score, and how many trials there were."""
    best, trials = found["best"], found["trials"]
    name = score_name(found)
    cells = [(steady(best["score"]), "", f"best validation {name}, trial {best['number']:03d}")] if best else []
    cells += [(str(len(trials)), "", "trials")]
    cells += [(str(len(of_state(found, s))), "", s) for s in ("complete", "pruned", "failed") if of_state(found, s)]
    return make_figures([*cells, (clock(sum(t.get("seconds", 0.0) for t in trials)), "", "training time")])


def show_best(found: dict[str, Any]) -> Html:
    """The values to use, and the command."""
    best = found["best"]
    if not best:
        return make_card("Best trial", Html('<p class="empty">No trial is complete yet.</p>'))
    values = make_pairs([("", "", {name: format_value(v) for name, v in best["values"].items()})])
    run = html('<p class="note">Its run is <a href="{}/report.html">{}</a>.</p>', best["run"], best["run"])
    command = html("<pre>{}</pre>", found["command"]) if found["command"] else None
    return make_card("Best trial", command, values, run, note="Train with these values:" if command else "")


def draw_history(found: dict[str, Any]) -> Html:
    """The score of every trial, and the best so far."""
    complete, pruned = of_state(found, "complete"), with_score(of_state(found, "pruned"))
    choose = max if found["watch"].startswith("max") else min
    best: list[float] = []
    for t in complete:
        best.append(choose(best[-1], t["score"]) if best else t["score"])
    numbers = [float(t["number"]) for t in complete]
    series = [Series("best so far", numbers, best, "line", 2)] if complete else []
    series += make_clouds(complete, pruned, lambda t: float(t["number"]))
    return make_card("History", name_series(series), draw_chart(series, (1000, 300), ("trial", score_name(found))))


def with_score(trials: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [t for t in trials if t["score"] is not None]


def make_clouds(complete: list[dict[str, Any]], pruned: list[dict[str, Any]], x: Any) -> list[Series]:
    """Complete and pruned trials as points."""
    pairs = [("complete", complete, 0), ("pruned", pruned, 1)]
    return [
        Series(label, [x(t) for t in trials], [t["score"] for t in trials], "spots", colour)
        for label, trials, colour in pairs
        if trials
    ]


def draw_importance(found: dict[str, Any]) -> Html:
    """A bar for each flag."""
    if not found["importance"]:
        return Html()
    bar = '<svg viewBox="0 0 400 14" role="img"><rect class="bar" width="{:.1f}" height="14" rx="3"/></svg>'
    rows = [
        html(
            '<tr><td>{}</td><td style="width:70%">{}</td><td class="number">{}</td></tr>',
            name,
            html(bar, 400 * share),
            f"{share:.0%}",
        )
        for name, share in found["importance"].items()
    ]
    note = "The share of the scores' variance that each flag explains (fANOVA over the complete trials)."
    return make_card("Importance", html('<table style="width:100%">{}</table>', rows), note=note)


def draw_slices(found: dict[str, Any]) -> Html:
    """The score against each flag."""
    if not of_state(found, "complete") and not with_score(of_state(found, "pruned")):
        return Html()
    columns = min(2, len(found["search"]))
    size = SLICE if columns == 2 else ALONE
    return make_row([make_small_card(d["name"], draw_slice(found, d, size)) for d in found["search"]], columns)


def draw_slice(found: dict[str, Any], d: dict[str, Any], size: tuple[int, int]) -> Html:
    """One flag: complete and pruned trials, the best with a ring."""
    name, places = d["name"], d.get("choices")

    def x(trial: dict[str, Any]) -> float:
        value = trial["values"][name]
        return float(places.index(value) if places is not None else value)

    series = make_clouds(of_state(found, "complete"), with_score(of_state(found, "pruned")), x)
    best, labels = found["best"], ("", score_name(found))
    marks = [(x(best), best["score"], steady(best["score"]))] if best else []
    if places is not None:
        return draw_choices(series, tuple(str(p) for p in places), size, labels, marks)
    if d.get("log"):
        return draw_log_chart(series, size, labels, marks)
    return draw_chart(series, size, labels, marks[0] if marks else None)


def draw_curves(found: dict[str, Any]) -> Html:
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
        return Html()
    note = "Blue: complete, orange: pruned. Green: the best trial."
    labels = ("step", f"validation {score_name(found)}")
    return make_card("Curves", draw_chart(series, (1000, 300), labels), note=note)


def list_trials(found: dict[str, Any]) -> Html:
    """Every trial, the best first."""
    sign = -1 if found["watch"].startswith("max") else 1
    order = {"complete": 0, "pruned": 1}
    trials = sorted(found["trials"], key=lambda t: (order.get(t["state"], 2), sign * (t["score"] or 0), t["number"]))
    names = [d["name"] for d in found["search"]]
    rows = [
        [
            html('<a href="{}/report.html">{}</a>', t["run"], f"{t['number']:03d}"),
            "" if t["score"] is None else steady(t["score"]),
            *(format_value(t["values"][name]) for name in names),
            str(t.get("step", "")),
            clock(t.get("seconds", 0.0)),
            t["state"] + (f": {t['fault']}" if t.get("fault") else ""),
        ]
        for t in trials
    ]
    return make_card("Trials", make_table(["trial", score_name(found), *names, "step", "time", "state"], rows))
