"""Use a trained model: a page for each family, over the routes of `server/`."""

from __future__ import annotations

import asyncio
import base64
import time
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, JSONResponse

from descend.errors import Mistake
from descend.report.history import read_history
from descend.report.listing import list_runs
from descend.server.json_body import read_body
from descend.web.markup import Html, html
from descend.web.parts import make_card, make_header, make_note
from descend.workbench.frame import show_page
from descend.workbench.verbs import ask_verb

if TYPE_CHECKING:
    from descend.workbench.app import Studio


def add_routes(api: FastAPI, studio: Studio) -> None:
    @api.get("/use")
    async def page(run: str = "") -> HTMLResponse:
        if not run:
            return await asyncio.to_thread(show_choice, studio, "Use", "/use", "Which model?")
        path = studio.place.find_run(run)
        about = str(read_history(path).recipe.get("about") or "")
        body = html(
            '<p class="actions">{}</p><div id="use" data-run="{}"><p class="empty">The model is opened …</p></div>',
            choose_checkpoint(path), run,
        )  # fmt: skip
        return show_page(f"Use {run}", "/use", make_header(run, about), body, script="use.js")

    @api.post("/api/open")
    async def open_model(request: Request) -> JSONResponse:
        asked = await read_body(request)
        run, checkpoint = asked.get("run"), asked.get("checkpoint", "best")
        if not isinstance(run, str) or not isinstance(checkpoint, str):
            raise Mistake("run: say which")
        key, service = await studio.opened.open(run, checkpoint)
        (name, served), *_ = service.served.items()
        schema = served.family.describe(name) if served.family is not None else None
        if schema is not None and served.family is not None:
            schema |= {"form": served.family.form.__name__}
        context = served.text.context if served.text is not None else 0
        step = int(served.trained.folder.resolve().name.removeprefix("step-"))
        told = {"kind": served.trained.kind, "offers": served.offers, "context": context, "step": step}
        return JSONResponse({"key": key, "model": name, "schema": schema, **told})

    @api.post("/api/film")
    async def film(request: Request) -> JSONResponse:
        """Episodes of a policy, as a moving picture."""
        asked = await read_body(request)
        run, seed, episodes = asked.get("run"), asked.get("seed", 0), asked.get("episodes", 1)
        if not isinstance(run, str) or not isinstance(seed, int) or not isinstance(episodes, int):
            raise Mistake("run, seed and episodes: say what to play")
        path = studio.place.own / f"film-{time.time_ns()}.gif"
        words = ["play", str(studio.place.find_run(run)), "-n", str(episodes), "--seed", str(seed), "--out", str(path)]
        try:
            found = await ask_verb([*words, "--json"], studio.place.data)
            picture = base64.b64encode(path.read_bytes()).decode()
        finally:
            path.unlink(missing_ok=True)
        return JSONResponse({"episodes": found, "film": f"data:image/gif;base64,{picture}"})


def show_choice(studio: Studio, title: str, here: str, question: str) -> HTMLResponse:
    """The runs that have a checkpoint, to choose one."""
    found = list_runs(studio.place.runs) if studio.place.runs.is_dir() else []
    rows = []
    for path in found:
        if has_checkpoint(path):
            name = studio.place.name_run(path)
            about = read_history(path).recipe.get("about") or ""
            rows.append(html('<li><a href="{}?{}">{}</a> {}</li>', here, urlencode({"run": name}), name, about))
    body = html("<ul>{}</ul>", rows) if rows else make_note("There is no trained model yet: train one first.")
    return show_page(title, here, make_header(title), make_card(question, body))


def has_checkpoint(path: Path) -> bool:
    return (path / "checkpoints" / "last").exists()


def list_steps(path: Path) -> list[tuple[int, str]]:
    """The steps of a run's checkpoints, with the names of their folders."""
    names = [one.name for one in (path / "checkpoints").glob("step-*") if one.name[5:].isdigit()]
    return sorted((int(name[5:]), name) for name in names)


def choose_checkpoint(path: Path) -> Html:
    """Best, last, or a step."""
    words = [word for word in ("best", "last") if (path / "checkpoints" / word).exists()]
    shown = [html('<option value="{}">{}</option>', word, word) for word in words]
    shown += [html('<option value="{}">step {:,}</option>', name, step) for step, name in list_steps(path)]
    return html('<label>checkpoint <select id="checkpoint">{}</select></label>', shown)
