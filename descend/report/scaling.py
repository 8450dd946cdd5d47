"""The page of a ladder of sizes: the answer, the law over the compute with its band, warnings, every run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from descend.engine.progress import clock, steady
from descend.theory.scaling_laws import UnifiedLaw
from descend.web.chart import Series, draw_log_chart, name_series
from descend.web.markup import Html, html
from descend.web.page import make_page, write_page
from descend.web.parts import make_card, make_figures, make_header, make_table, make_warning


def write_scaling(folder: Path, found: dict[str, Any]) -> Path:
    """Write report.html into the folder of a ladder, from what `descend scale --json` prints."""
    said = f"Sizes of one recipe, trained one after the other: validation {found['score']} over compute."
    state = "finished" if found["state"] == "finished" else "interrupted"
    body = [make_header(found["recipe"], said, state), make_headline(found)]
    body += [make_warning(line) for line in found["warnings"]]
    body += [draw_law(found), list_rungs(found)]
    return write_page(folder / "report.html", make_page(f"{found['recipe']}: scaling", *body))


def make_headline(found: dict[str, Any]) -> Html:
    """What more compute would give."""
    prediction, law = found["prediction"], found["law"]
    if not prediction:
        return make_card("No law yet", html('<p class="empty">{}</p>', "Too few sizes are done to draw a line."))
    low, high = prediction["interval"]
    cells = [
        (
            steady(prediction["loss"]),
            f"{low:.4g} to {high:.4g}",
            f"{found['score']} with {found['times']:g}x the compute",
        ),
        (f"{prediction['parameters']:,}", "", "parameters to train with it"),
        (f"{prediction['steps']:,}", "", "steps"),
        (f"{law['floor']:.4g}", "{:.4g} to {:.4g}".format(*law["floor_interval"]), "floor"),
        (f"{law['alpha']:.3g}", "{:.3g} to {:.3g}".format(*law["alpha_interval"]), "exponent"),
    ]
    return make_figures(cells)


def draw_law(found: dict[str, Any]) -> Html:
    """The runs, the law through them and its 95% band up to the asked compute."""
    done = [rung for rung in found["rungs"] if rung["loss"] is not None]
    series = []
    marks = []
    if found["law"]:
        curve = found["curve"]
        series = [
            Series("law", curve["compute"], curve["loss"], "line", 0),
            Series("95% band", curve["compute"], curve["low"], "line", 3),
            Series("95% band", curve["compute"], curve["high"], "line", 3),
        ]
        at = found["prediction"]
        marks = [(at["compute"], at["loss"], f"{found['times']:g}x")]
    series += [Series("runs", [r["compute"] for r in done], [r["loss"] for r in done], "spots", 1)]
    chart = draw_log_chart(series, (1000, 340), ("FLOPs", found["score"]), marks)
    note = "The band is of laws fitted to sweeps drawn again from the fit and its scatter."
    named = [s for i, s in enumerate(series) if s.label not in {other.label for other in series[:i]}]
    return make_card("Scaling law", name_series(named), chart, note=note)


def draw_contours(law: UnifiedLaw, losses: Sequence[float], least: float = 1e7, most: float = 1e12) -> Html:
    """Lines of equal loss over parameters and tokens: how much of one makes up for less of the other."""
    sizes = [least * (most / least) ** (i / 60) for i in range(61)]
    series = []
    for colour, loss in enumerate(losses):
        points = [(n, d) for n in sizes if math.isfinite(d := law.tokens_for(loss, n)) and d < 1e16]
        if points:
            x, y = [n for n, _ in points], [math.log10(d) for _, d in points]
            series.append(Series(f"{loss:g} nats", x, y, "line", colour))
    chart = draw_log_chart(series, (1000, 340), ("parameters", "log10 of the tokens"))
    note = "Where a line is upright the model is too small, where it is level the data are too few."
    return make_card("Equal loss", name_series(series), chart, note=note)


def list_rungs(found: dict[str, Any]) -> Html:
    """A line for each size."""
    rows = [
        [
            ", ".join(f"{name.rpartition('.')[2]} {value}" for name, value in rung["values"].items()),
            rung["parameters"],
            rung["steps"],
            f"{rung['compute']:.3g}",
            "" if rung["loss"] is None else steady(rung["loss"]),
            clock(rung["steps"] * rung["seconds"]),
            rung["run"],
        ]
        for rung in found["rungs"]
    ]
    names = ["size", "parameters", "steps", "FLOPs", found["score"], "time planned", "run"]
    return make_card("Runs", make_table(names, rows))
