"""Use a trained model: a page for each family, over the routes of `server/`."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any
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
from descend.workbench.lazy import bring

if TYPE_CHECKING:
    from descend.inference.trained import Trained
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
        try:
            key, service = await studio.opened.open(run, checkpoint)
        except Mistake:
            return JSONResponse(await asyncio.to_thread(tell_beside, studio.opened.find(run, checkpoint)))
        (name, served), *_ = service.served.items()
        schema = served.family.describe(name) if served.family is not None else None
        if schema is not None and served.family is not None:
            schema |= {"form": served.family.form.__name__}
            if schema["form"] == "AskGraphs":
                schema |= {"example": await asyncio.to_thread(find_example, studio.place.find_run(run))}
        context = served.text.context if served.text is not None else 0
        vectors = await asyncio.to_thread(find_vectors, served.trained)
        told = {"kind": served.trained.kind, "offers": served.offers, "context": context, "vectors": vectors}
        return JSONResponse({"key": key, "model": name, "schema": schema, "step": read_step(served.trained), **told})


def read_step(trained: Trained) -> int:
    return int(trained.folder.resolve().name.removeprefix("step-"))


def find_vectors(trained: Trained) -> dict[str, bool]:
    """Of what the model gives vectors, to be searched and mapped."""
    found: dict[str, bool] = bring("space").say_vectors(trained)
    return found


def find_example(run: Path) -> dict[str, Any]:
    """A graph that the model can answer."""
    found: dict[str, Any] = bring("graph_example").give_graph(run)
    return found


def tell_beside(checkpoint: Path) -> dict[str, Any]:
    """What a page can do with a model that no route of the server answers for: an encoder of images, a policy that
    moves an arm."""
    bring("space")  # whole, before parts of it are imported
    from descend.contracts import PlansActions
    from descend.inference import open_trained
    from descend.inference.trained import load_trained

    trained = load_trained(str(checkpoint))
    told = {"kind": trained.kind, "step": read_step(trained), "offers": [], "context": 0, "schema": None}
    if isinstance(trained.model, PlansActions):
        return told | {"acts": True, "vectors": {}}
    if not (vectors := find_vectors(trained)):
        open_trained(trained, str(checkpoint))  # says why it cannot
        raise Mistake(f"a {trained.kind} cannot be used from a page yet")
    return told | {"vectors": vectors}


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
