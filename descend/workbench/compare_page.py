"""Several runs in one chart, and their differing flags side by side."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Literal
from urllib.parse import urlencode

from fastapi import FastAPI, Query
from fastapi.responses import HTMLResponse

from descend.errors import Mistake
from descend.report.curves import FEW
from descend.report.difference import compare_flags, count_shared, find_partings, gather_metrics
from descend.report.history import History, read_history
from descend.report.scores import spell
from descend.web.chart import Series, draw_chart, name_series, smooth
from descend.web.markup import Html, html, join
from descend.web.palette import PALETTE
from descend.web.parts import make_card, make_header, make_note, make_table
from descend.workbench.frame import show_page, show_part

if TYPE_CHECKING:
    from descend.workbench.app import Studio

MOST = 20  # runs in one chart
SIZE = (1000, 300)
Names = Annotated[list[str], Query()]
Across = Literal["step", "time"]


def add_routes(api: FastAPI, studio: Studio) -> None:
    def read(names: list[str]) -> list[History]:
        if not 2 <= len(names) <= MOST:
            raise Mistake(f"mark 2 to {MOST} runs to compare them, not {len(names)}")
        return [read_history(studio.place.find_run(name)) for name in names]

    @api.get("/compare")
    async def page(run: Names = [], across: Across = "step", scale: str = "auto", raw: bool = False) -> HTMLResponse:  # noqa: B006
        names = list(dict.fromkeys(run))
        histories = await asyncio.to_thread(read, names)
        asked = [("run", name) for name in names]
        query = urlencode([*asked, ("across", across), ("scale", scale), ("raw", str(raw).lower())])
        drawn = await asyncio.to_thread(draw_curves, histories, names, across, scale, raw)
        live = html('<div data-part="/part/curves?{}" data-events="/events">{}</div>', query, drawn)
        about = f"{len(names)} runs in the same charts, and what they were asked to do differently."
        return show_page(
            "Compare", "/", make_header("Compare", about), draw_choices(asked, across, scale, raw), live,
            await asyncio.to_thread(draw_differences, histories, names),
        )  # fmt: skip

    @api.get("/part/curves")
    async def curves(run: Names = [], across: Across = "step", scale: str = "auto", raw: bool = False) -> HTMLResponse:  # noqa: B006
        histories = await asyncio.to_thread(read, run)
        return show_part(await asyncio.to_thread(draw_curves, histories, run, across, scale, raw))


def draw_choices(asked: list[tuple[str, str]], across: str, scale: str, raw: bool) -> Html:
    """How the charts are drawn; the address keeps it."""
    hidden = [html('<input type="hidden" name="{}" value="{}">', *pair) for pair in asked]
    option = '<option value="{}"{}>{}</option>'
    ways = (("step", "steps"), ("time", "seconds"))
    scales = (("auto", "automatic"), ("even", "linear"), ("log", "logarithmic"))
    along = [html(option, v, Html(" selected") if v == across else None, t) for v, t in ways]
    up = [html(option, v, Html(" selected") if v == scale else None, t) for v, t in scales]
    return html(
        '<form class="actions" action="/compare" data-submit="change">{}<label>across <select name="across">{}</select>'
        '</label><label>scale <select name="scale">{}</select></label><label><input type="checkbox" name="raw"'
        ' value="true"{}> as measured</label></form>',
        hidden, along, up, Html(" checked") if raw else None,
    )  # fmt: skip


def draw_curves(histories: list[History], names: list[str], across: str, scale: str, raw: bool) -> Html:
    """A chart for every metric that at least one run has, those of all runs first."""
    found = [gather_metrics(one) for one in histories]
    times = [{line["step"]: line.get("time", 0.0) for line in (*one.train, *one.valid)} for one in histories]
    every = dict.fromkeys(name for metrics in found for name in metrics)
    order = sorted(every, key=lambda name: (-sum(name in metrics for metrics in found), not is_score(name), name))
    cards = []
    for name in order:
        series: list[Series] = []
        for i, (metrics, clock, label) in enumerate(zip(found, times, names, strict=True)):
            steps = sorted(metrics.get(name, {}))
            if steps:
                x = [float(clock[step] if across == "time" else step) for step in steps]
                series += draw_line(label, x, [metrics[name][step] for step in steps], i % PALETTE, raw)
        shown = f"validation {spell(name.removeprefix('valid.'))}" if is_score(name) else spell(name)
        label = "seconds" if across == "time" else "step"
        cards.append(make_card(shown, name_series(series), draw_chart(series, SIZE, (label, ""), scale=scale)))
    return join(cards)


def draw_line(label: str, x: list[float], y: list[float], colour: int, raw: bool) -> list[Series]:
    """A curve, smoothed where it is long."""
    line = Series(label, x, y, "line", colour)
    points = line.finite()
    if raw or len(points) < FEW:
        return [line]
    return [Series(label, [at for at, _ in points], smooth([value for _, value in points]), "line", colour)]


def is_score(name: str) -> bool:
    return name.startswith("valid.")


def draw_differences(histories: list[History], names: list[str]) -> Html:
    """The flags that differ; of two runs, where their curves part."""
    flags = compare_flags(histories)
    rows = [[name, *(str(value) for value in values)] for name, values in flags.items()]
    table = make_table(["value", *names], rows) if rows else make_note("The same values.")
    parts = [make_card("What differs", table)]
    if len(histories) == 2:
        found, shared = find_partings(*histories), count_shared(*histories)
        if found:
            cells = [[one.name, one.step, one.first, one.second] for one in found]
            parts.append(make_card("Where the curves part", make_table(["metric", "step", *names], cells)))
        elif shared:
            text = f"The curves are the same, to the bit, at all {shared:,} steps that both have measured."
            parts.append(make_card("Where the curves part", make_note(text)))
    return join(parts)
