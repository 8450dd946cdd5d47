"""The page of a run: live curves, what the doctor finds, samples, its values, and the buttons to stop and resume it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from fastapi import FastAPI, Request
from fastapi.responses import FileResponse, HTMLResponse, JSONResponse

from descend.errors import Mistake
from descend.report.curves import draw_course, draw_losses, draw_measures, draw_terms
from descend.report.history import History, is_alive, read_history
from descend.report.page import list_environment, list_values, make_headline, make_warnings
from descend.report.scores import draw_scores
from descend.server.json_body import read_body
from descend.web.markup import Html, html, join
from descend.web.parts import make_card, make_header, make_images, make_note, make_warning
from descend.workbench.frame import show_page, show_part
from descend.workbench.jobs import ENDED
from descend.workbench.verbs import ask_verb

if TYPE_CHECKING:
    from descend.workbench.app import Studio

SANDBOX = "sandbox allow-scripts; default-src 'unsafe-inline' data:"  # a report may be a stranger's
SAMPLES = 8  # newest images of samples that are shown
FILES = {".html": "text/html; charset=utf-8", ".png": "image/png", ".gif": "image/gif"}


def add_routes(api: FastAPI, studio: Studio) -> None:
    @api.get("/run")
    async def page(run: str) -> HTMLResponse:
        query = urlencode({"run": run})
        live = html(
            '<div data-part="/part/run?{}" data-events="/events?{}">{}</div>',
            query, query, await asyncio.to_thread(draw_any, studio, run),
        )  # fmt: skip
        doctor = html(
            '<details class="card" data-load="/part/doctor?{}"><summary>Doctor: what is wrong with this run?'
            '</summary><p class="empty">A few batches go through the network …</p></details>',
            query,
        )
        return show_page(run, "/", live, doctor)

    @api.get("/part/run")
    async def part(run: str) -> HTMLResponse:
        return show_part(await asyncio.to_thread(draw_any, studio, run))

    @api.get("/part/doctor")
    async def examine(run: str) -> HTMLResponse:
        path = studio.place.find_run(run)
        return show_part(draw_findings(await ask_verb(["doctor", str(path), "--json"], studio.place.data)))

    @api.get("/file")
    async def file(run: str, name: str) -> FileResponse:
        found = studio.place.find_file(studio.place.find_run(run), name)
        if found.suffix not in FILES:
            raise Mistake(f"{name}: reports and images can be opened here, other files are in {found.parent}")
        headers = {"Content-Security-Policy": SANDBOX} if found.suffix == ".html" else {}
        return FileResponse(found, media_type=FILES[found.suffix], headers=headers | {"Cache-Control": "no-cache"})

    @api.post("/api/stop")
    async def stop(request: Request) -> JSONResponse:
        run = await read_run(request)
        return JSONResponse({"said": f"{run}: {await asyncio.to_thread(studio.queue.stop, run)}"})

    @api.post("/api/resume")
    async def resume(request: Request) -> JSONResponse:
        run = await read_run(request)
        path = studio.place.find_run(run)
        if is_alive(path):
            raise Mistake(f"{run} is running")
        studio.queue.add(["resume", str(path)], run)
        return JSONResponse({"said": f"{run} goes on as soon as it is its turn"})

    @api.post("/api/forget")
    async def forget(request: Request) -> JSONResponse:
        run = await read_run(request)
        with studio.queue.lock:
            studio.queue.jobs = [job for job in studio.queue.jobs if job.run != run or job.state not in ENDED]
            studio.queue.save()
        return JSONResponse({"said": ""})


async def read_run(request: Request) -> str:
    run = (await read_body(request)).get("run")
    if not isinstance(run, str) or not run:
        raise Mistake("run: say which")
    return run


def draw_any(studio: Studio, run: str) -> Html:
    """A run, or the job that will make its folder."""
    job = studio.queue.last(run)
    if job is None or (studio.place.runs / run / "recipe.json").exists():
        return draw_run(studio, studio.place.find_run(run))
    state = "starting" if job.state == "running" else job.state
    button = html(
        '<p class="actions"><button data-post="/api/stop" data-run="{}">Take out of the queue</button></p>', run
    )
    said = make_warning(job.said) if job.said else None
    log = html("<pre>{}</pre>", studio.queue.tail(job)) if job.state == "failed" else None
    waits = button if job.state == "waiting" else None
    return join(
        [make_header(run, "", state), waits, said, make_card("Command", html("<code>{}</code>", job.command), log)]
    )


def draw_run(studio: Studio, path: Path) -> Html:
    """Everything that the files say, as the report shows it."""
    history = read_history(path)
    name = studio.place.name_run(path)
    return join([
        make_header(name, str(history.recipe.get("about") or ""), history.state),
        draw_actions(studio, name, history),
        make_warnings(history),
        draw_last_words(studio, name),
        make_headline(history),
        draw_scores(history),
        draw_losses(history),
        draw_terms(history),
        draw_measures(history),
        draw_course(history),
        draw_samples(name, path),
        html("<details><summary>Values and environment</summary>{}{}</details>", list_values(history),
             list_environment(history)),
    ])  # fmt: skip


def draw_actions(studio: Studio, name: str, history: History) -> Html:
    """What can be done with it now."""
    query, job = urlencode({"run": name}), studio.queue.find(name)
    button = '<button data-post="{}" data-run="{}">{}</button>'
    act: Html | None = None
    if history.state == "running":
        act = html(button, "/api/stop", name, "Stop and save")
    elif job is not None and job.state == "waiting":
        act = html(button, "/api/stop", name, "Take out of the queue")
    elif history.state == "interrupted" and job is None:
        act = html(button, "/api/resume", name, "Resume")
    links = (
        [("/use", "Use it"), ("/inside", "Look inside")] if (history.folder / "checkpoints" / "last").exists() else []
    )
    shown = [html('<a class="button" href="{}?{}">{}</a>', path, query, text) for path, text in links]
    if (history.folder / "report.html").exists():
        report = urlencode({"run": name, "name": "report.html"})
        shown.append(html('<a class="button" href="/file?{}" target="_blank" rel="noopener">Report</a>', report))
    shown.append(html('<a class="button" href="/train/form?{}">Again with other values</a>', urlencode({"like": name})))
    return html('<p class="actions">{}{}</p>', act, shown)


def draw_last_words(studio: Studio, name: str) -> Html:
    """Why the last command for this run failed."""
    job = studio.queue.last(name)
    return make_warning(f"{job.command}: {job.said}") if job is not None and job.state == "failed" else Html()


def draw_samples(name: str, path: Path) -> Html:
    """What a generator made at its evaluations, the newest first."""
    found = sorted((path / "samples").glob("step-*.png"), key=lambda file: -int(file.stem.partition("-")[2] or 0))
    if not found:
        return Html()
    sources = [f"/file?{urlencode({'run': name, 'name': f'samples/{file.name}'})}" for file in found[:SAMPLES]]
    captions = [file.stem.replace("-", " ") for file in found[:SAMPLES]]
    return make_card("Samples", make_images(sources, captions, 230))


def draw_findings(found: dict[str, Any]) -> Html:
    """What the doctor finds."""
    from descend.diagnosis.page import show_finding
    from descend.diagnosis.signs import Finding

    cards = [show_finding(Finding(**finding)) for finding in found["findings"]]
    notes = [make_note(note) for note in found["notes"]]
    return join([*(cards or [Html('<p class="good">No problem found.</p>')]), *notes])
