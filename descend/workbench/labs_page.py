"""Labs: claims of the books, run here, watched, judged; and the ledger of what they found."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from fastapi import FastAPI, Request
from fastapi.responses import FileResponse, HTMLResponse, JSONResponse

from descend.errors import Mistake
from descend.server.json_body import read_body
from descend.web.markup import Html, html
from descend.web.parts import make_card, make_header, make_warning
from descend.workbench.frame import show_page, show_part
from descend.workbench.run_page import SANDBOX

if TYPE_CHECKING:
    from descend.workbench.app import Studio

NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,80}")
VERDICTS = ("supported", "refuted", "open")
VERDICT = re.compile('<span class="state (supported|refuted|open)">')


def add_routes(api: FastAPI, studio: Studio) -> None:
    folder = studio.place.own / "labs"

    @api.get("/labs")
    async def page(name: str = "") -> HTMLResponse:
        if name:
            return await asyncio.to_thread(show_lab, studio, folder, name)
        about = "Claims of the books, each tested by a small measurement on several seeds."
        field = Html(
            '<p class="actions"><label>Search <input type="search" data-filter="#labs tbody tr" autofocus></label></p>'
        )
        part = Html('<div id="labs" data-part="/part/labs"><p class="empty">The labs are read …</p></div>')
        return show_page("Labs", "/labs", make_header("Labs", about), field, part)

    @api.get("/part/labs")
    async def table() -> HTMLResponse:
        return show_part(await asyncio.to_thread(draw_labs, studio, folder))

    @api.get("/part/lab")
    async def part(name: str) -> HTMLResponse:
        return show_part(await asyncio.to_thread(draw_lab, studio, folder, check_name(name)))

    @api.post("/api/lab")
    async def measure(request: Request) -> JSONResponse:
        asked = await read_body(request)
        name, seeds = check_name(asked.get("name")), asked.get("seeds", "3")
        if not str(seeds).isdigit() or not 1 <= int(seeds) <= 50:
            raise Mistake(f"seeds {seeds}: give 1 to 50")
        folder.mkdir(parents=True, exist_ok=True)
        words = ["lab", name, "--seeds", str(seeds), "--keep", str(folder / "kept")]
        studio.queue.add([*words, "--out", str(folder / f"{name}.html")], f"lab {name}")
        return JSONResponse({"said": f"{name} is in the queue"})

    @api.get("/lab/{name}.html")
    async def result(name: str) -> FileResponse:
        path = folder / f"{check_name(name)}.html"
        if not path.is_file():
            raise Mistake(f"{name} was not measured here yet")
        headers = {"Content-Security-Policy": SANDBOX, "Cache-Control": "no-cache"}
        return FileResponse(path, media_type="text/html; charset=utf-8", headers=headers)


def check_name(name: object) -> str:
    """The name of a lab that there is."""
    from descend import labs

    if not isinstance(name, str) or not NAME.fullmatch(name) or name not in labs.names():
        raise Mistake("there is no such lab: the page of labs lists them")
    return name


def draw_labs(studio: Studio, folder: Path) -> Html:
    """Every lab with its claim."""
    from descend import labs

    rows: list[Html] = []
    found: Counter[str] = Counter()
    for name in labs.names():
        job = studio.queue.last(f"lab {name}")
        verdict = read_verdict(folder / f"{name}.html")
        found[verdict] += 1
        state = job.state if job is not None and job.state in ("waiting", "running", "failed") else verdict
        badge = html(' <span class="state {}">{}</span>', state, state) if state else None
        link = html('<a href="/labs?{}">{}</a>', urlencode({"name": name}), name)
        rows.append(html("<tr><td>{}</td><td>{}{}</td></tr>", link, labs.claim(name), badge))
    head = Html("<thead><tr><th>lab</th><th>the claim, as tested, and what was found here</th></tr></thead>")
    table = html('<div class="wide"><table>{}<tbody>{}</tbody></table></div>', head, rows)
    told = ", ".join(f"{found[verdict]} {verdict}" for verdict in VERDICTS if found[verdict])
    note = f"Measured here: {told}." if told else "None was measured here yet."
    return make_card(f"{len(rows)} labs", table, note=note)


def read_verdict(page: Path) -> str:
    """What the page of a lab begins with; nothing where it was not measured."""
    try:
        with page.open(encoding="utf-8") as file:
            match = VERDICT.search(file.read())
    except FileNotFoundError:
        return ""
    return match[1] if match else ""


def show_lab(studio: Studio, folder: Path, name: str) -> HTMLResponse:
    from descend import labs

    check_name(name)
    form = html(
        '<p class="actions"><label>seeds <input id="seeds" inputmode="numeric" value="3" size="3"></label>'
        '<button class="main" data-post="/api/lab" data-name="{}" data-take="seeds">Measure</button></p>',
        name,
    )
    query = urlencode({"name": name})
    live = html('<div data-part="/part/lab?{}" data-events="/events">{}</div>', query, draw_lab(studio, folder, name))
    return show_page(name, "/labs", make_header(name, labs.claim(name)), form, live)


def draw_lab(studio: Studio, folder: Path, name: str) -> Html:
    """How the measurement goes, and what was found."""
    job, path = studio.queue.last(f"lab {name}"), folder / f"{name}.html"
    if job is not None and job.state in ("waiting", "running"):
        log = studio.queue.tail(job).strip().splitlines()[-1:]
        return make_card(f"{job.state} …", html("<p class='note'>{}</p><code>{}</code>", log, job.command))
    failed = make_warning(job.said) if job is not None and job.state == "failed" else None
    if not path.exists():
        return html("{}{}", failed, Html('<p class="empty">Not measured here yet.</p>'))
    mark = int(path.stat().st_mtime)
    return html(
        '{}<iframe class="page" src="/lab/{}.html?{}" title="what {} found"></iframe>', failed, name, mark, name
    )
