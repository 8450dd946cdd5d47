"""The list of runs: state, best score, a small curve of each, and the queue."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from fastapi import FastAPI
from fastapi.responses import HTMLResponse, Response

from descend.engine.progress import clock
from descend.errors import Mistake
from descend.report.history import History, as_number, is_alive, read_history
from descend.report.listing import list_runs, summarize_run
from descend.report.scores import spell
from descend.server.streams import EventStream
from descend.web.chart import gather_peaks
from descend.web.markup import Html, html
from descend.web.parts import make_card, make_header
from descend.workbench.frame import show_page, show_part
from descend.workbench.jobs import ENDED

if TYPE_CHECKING:
    from descend.workbench.app import Studio

PERIOD = 0.5  # seconds between two looks at a folder
WIDE, HIGH = 120, 28  # pixels of a small curve
LATEST = 200  # runs that are shown


def add_routes(api: FastAPI, studio: Studio) -> None:
    @api.get("/")
    async def page() -> HTMLResponse:
        about = f"Everything that was trained in {studio.place.runs}."
        start = Html('<p class="actions"><a class="button" href="/train">Train a model</a></p>')
        live = html('<div data-part="/part/runs" data-events="/events">{}</div>', await asyncio.to_thread(draw, studio))
        return show_page("Runs", "/", make_header("Runs", about), start, live)

    @api.get("/part/runs")
    async def part() -> HTMLResponse:
        return show_part(await asyncio.to_thread(draw, studio))

    @api.get("/events")
    async def events(run: str = "") -> Response:
        """One event whenever something has changed in a run, or in any."""
        folder = studio.place.check_new_run(run) if run else None
        return EventStream(watch(studio, folder), lambda: None)


async def watch(studio: Studio, folder: Path | None) -> AsyncIterator[dict[str, Any]]:
    before: object = None
    while not studio.ending:
        now = await asyncio.to_thread(take_marks, studio, folder)
        if now != before:
            yield {"changed": True, "first": before is None}
        before = now
        await asyncio.sleep(PERIOD)


def take_marks(studio: Studio, folder: Path | None) -> object:
    """What is not the same once something was written, begun or ended."""
    queue = [(job.number, job.state) for job in studio.queue.jobs]
    try:
        folders = [folder] if folder else list_runs(studio.place.runs)[:LATEST]
    except Mistake:
        folders = []
    return queue, [(str(one), mark_file(one / "metrics.jsonl"), mark_file(one / "report.html"), is_alive(one))
                   for one in folders]  # fmt: skip


def mark_file(path: Path) -> tuple[int, int]:
    try:
        found = path.stat()
    except OSError:
        return 0, 0
    return found.st_mtime_ns, found.st_size


def draw(studio: Studio) -> Html:
    """The queue and the table."""
    found = list_runs(studio.place.runs) if studio.place.runs.is_dir() else []
    parts = [draw_queue(studio, {studio.place.name_run(path) for path in found})]
    if not found:
        text = "Nothing was trained here yet. A first model takes a minute."
        return html("{}{}", parts, make_card("No runs yet", html("<p>{}</p>", text)))
    rows = [draw_run(studio, path) for path in found[:LATEST]]
    head = Html(
        "<thead><tr><th><span class='hidden'>compare</span></th><th>run</th><th>recipe</th><th>state</th><th>step</th>"
        "<th>best</th><th>curve</th><th>time</th></tr></thead>"
    )
    more = html('<p class="note">The {} newest of {} runs.</p>', LATEST, len(found)) if len(found) > LATEST else None
    button = Html('<p class="actions"><button type="submit">Compare the marked runs</button></p>')
    table = html('<div class="wide"><table class="runs">{}<tbody>{}</tbody></table></div>', head, rows)
    return html('{}<form action="/compare" id="compare">{}{}</form>', parts, make_card("Runs", table, more), button)


def draw_run(studio: Studio, path: Path) -> Html:
    """A row."""
    name = studio.place.name_run(path)
    told = summarize(str(path), mark_file(path / "metrics.jsonl"), is_alive(path))
    link = html('<a href="/run?{}">{}</a>', urlencode({"run": name}), name)
    mark = html('<input type="checkbox" name="run" value="{}" aria-label="compare {}">', name, name)
    if "recipe" not in told:
        return html('<tr><td></td><td>{}</td><td colspan=6 class="bad">{}</td></tr>', link, told["fault"])
    best = "" if told["best"] is None else f"{spell(told['score'])} {told['best']:.4g}"
    steps = f"{told['step']:,} / {told['steps']:,}" if told["steps"] else f"{told['step']:,}"
    return html(
        '<tr><td>{}</td><td>{}</td><td>{}</td><td><span class="state {}">{}</span></td><td class="number">{}</td>'
        '<td>{}</td><td>{}</td><td class="number">{}</td></tr>',
        mark, link, told["recipe"], told["state"], told["state"], steps, best, told["curve"], clock(told["seconds"]),
    )  # fmt: skip


@lru_cache(maxsize=2 * LATEST)
def summarize(path: str, mark: tuple[int, int], alive: bool) -> dict[str, Any]:
    """What `runs` says of it, and its curve: read anew only where something was written."""
    told = summarize_run(Path(path))
    return told | {"curve": draw_small_curve(read_history(Path(path)))} if "recipe" in told else told


def draw_small_curve(history: History) -> Html:
    """The watched score over the steps, or the training loss."""
    _, score = history.watch
    points = [(line["step"], as_number(line["valid"].get(score))) for line in history.valid]
    if len(points) < 2 and history.losses:
        points = list(zip(*history.series(history.losses[0]), strict=True))
    points = [(x, y) for x, y in points if math.isfinite(y)]
    if len(points) < 2:
        return Html()
    low, high = min(y for _, y in points), max(y for _, y in points)
    last = points[-1][0]
    placed = [(x / last * (WIDE - 4) + 2, HIGH - 3 - (y - low) / ((high - low) or 1) * (HIGH - 6)) for x, y in points]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in gather_peaks(placed))
    return html(
        '<svg class="spark" viewBox="0 0 {} {}" role="img" aria-label="{} from {:.4g} to {:.4g}">'
        '<polyline class="line c0" points="{}"/></svg>',
        WIDE, HIGH, spell(score), points[0][1], points[-1][1], line,
    )  # fmt: skip


def draw_queue(studio: Studio, there: set[str]) -> Html:
    """What waits, what has begun but has no folder yet, and what failed before it had one."""
    shown = []
    for job in studio.queue.jobs:
        if job.state == "waiting" or (job.run not in there and (job.state not in ENDED or job.state == "failed")):
            stop = html('<button data-post="/api/stop" data-run="{}">Take out</button>', job.run)
            drop = html('<button data-post="/api/forget" data-run="{}">Forget</button>', job.run)
            label = "starting" if job.state == "running" else job.state
            row = '<li><span class="state {}">{}</span> <b>{}</b> <code>{}</code> {}<span class="bad">{}</span></li>'
            act = stop if job.state == "waiting" else drop if job.state == "failed" else None
            shown.append(html(row, job.state, label, job.run, job.command, act, job.said))
    return make_card("Queue", html('<ul class="queue">{}</ul>', shown)) if shown else Html()
