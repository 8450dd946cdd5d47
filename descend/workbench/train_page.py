"""Train from a form: choose a recipe, set its flags, check the data and the cost, start. The form gives the command."""

from __future__ import annotations

import asyncio
import shlex
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, JSONResponse

from descend.errors import Mistake
from descend.server.json_body import read_body
from descend.web.markup import Html
from descend.web.parts import make_header, make_warning
from descend.workbench.frame import show_page, show_part
from descend.workbench.lazy import bring
from descend.workbench.place import Place
from descend.workbench.plan_part import draw_plan
from descend.workbench.verbs import ask_verb

if TYPE_CHECKING:
    from descend.workbench.app import Studio
    from descend.workbench.form import Order


def add_routes(api: FastAPI, studio: Studio) -> None:
    add_pages(api, studio.place)
    add_actions(api, studio)


def add_pages(api: FastAPI, place: Place) -> None:
    """Choosing a recipe, and its form."""

    @api.get("/train")
    async def page() -> HTMLResponse:
        about = "A recipe is a model, data to begin with, and values that work. Every value can be changed."
        field = Html(
            '<p class="actions"><label>Search <input type="search" data-filter="#recipes tbody tr"'
            ' placeholder="digits, yolo, text …" autofocus></label></p>'
        )
        part = Html('<div id="recipes" data-part="/part/recipes"><p class="empty">The recipes are read …</p></div>')
        return show_page("Train", "/train", make_header("Train", about), field, part)

    @api.get("/part/recipes")
    async def list_recipes() -> HTMLResponse:
        return show_part(await asyncio.to_thread(forms().draw_recipes))

    @api.get("/train/form")
    async def form(recipe: str = "", like: str = "") -> HTMLResponse:
        name, given = await asyncio.to_thread(forms().read_like, place, like) if like else (recipe, {})
        return await asyncio.to_thread(forms().show_form, name, given, like)


def add_actions(api: FastAPI, studio: Studio) -> None:
    """What the form asks for."""
    place = studio.place

    @api.post("/api/command")
    async def command(request: Request) -> JSONResponse:
        asked = await read_body(request)
        try:
            order = await asyncio.to_thread(read_order, place, asked)
        except Mistake as mistake:  # what is half typed is no failed request
            return JSONResponse({"wrong": str(mistake)})
        return JSONResponse({"command": shlex.join(["descend", *order.words])})

    @api.post("/api/plan")
    async def plan(request: Request) -> HTMLResponse:
        order = await asyncio.to_thread(read_order, place, await read_body(request))
        words = ["plan", *cut_flags(order.words[1:], ("--out", "--budget")), "--json"]
        sheet = place.own / f"sheet-{time.time_ns()}.png"
        place.own.mkdir(parents=True, exist_ok=True)
        try:
            found = await ask_verb([*words, "--sheet", str(sheet)] if order.draws else words, place.data)
            return show_part(draw_plan(found, sheet.read_bytes() if order.draws else b""))
        except Mistake as mistake:  # what is wrong with the data is an answer
            return show_part(make_warning(str(mistake)))
        finally:
            sheet.unlink(missing_ok=True)

    @api.post("/api/train")
    async def train(request: Request) -> JSONResponse:
        order = await asyncio.to_thread(read_order, place, await read_body(request))
        if (order.out / "recipe.json").exists():
            raise Mistake(f"there is a run {place.name_run(order.out)} already: give another name")
        run = place.name_run(order.out)
        studio.queue.add(order.words, run)
        return JSONResponse({"said": f"{run} is in the queue", "go": f"/run?{urlencode({'run': run})}"})


def forms() -> Any:
    """What knows the recipes, and torch with them: the studio itself starts without."""
    return bring("form")


def read_order(place: Place, sent: dict[str, Any]) -> Order:
    found: Order = forms().read_order(place, sent)
    return found


def cut_flags(words: list[str], names: tuple[str, ...]) -> list[str]:
    """The words without these flags and their values."""
    return [word for i, word in enumerate(words) if word not in names and (i == 0 or words[i - 1] not in names)]
