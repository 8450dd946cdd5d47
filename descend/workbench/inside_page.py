"""Look inside a run: a slider over its checkpoints, what its family shows, its layers, one's own input."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse
from pydantic import BaseModel

from descend.errors import Mistake
from descend.report.history import read_history
from descend.server.json_body import read_body
from descend.web.markup import html
from descend.web.parts import make_header, make_warning
from descend.workbench.frame import show_page, show_part
from descend.workbench.lazy import bring
from descend.workbench.use_page import list_steps, show_choice

if TYPE_CHECKING:
    from descend.workbench.app import Studio


class Own(BaseModel):
    """An input of the user's own."""

    run: str
    step: int
    text: str = ""
    image: str = ""
    row: dict[str, str] = {}


def add_routes(api: FastAPI, studio: Studio) -> None:
    place = studio.place

    @api.get("/inside")
    async def page(run: str = "", step: int = 0) -> HTMLResponse:
        if not run:
            return await asyncio.to_thread(show_choice, studio, "Look inside", "/inside", "Which network?")
        path = place.find_run(run)
        steps = [step for step, _ in list_steps(path)]
        about = str(read_history(path).recipe.get("about") or "")
        if not steps:
            return show_page(run, "/inside", make_header(run, about), make_warning("It has no checkpoint yet."))
        at = steps.index(step) if step in steps else len(steps) - 1
        body = html(
            '<p class="actions"><label for="step">training time</label><input id="step" type="range" min="0" max="{}"'
            ' value="{}" list="steps"><output id="at" for="step"></output><a class="button" href="/run?{}">Run</a></p>'
            '<p class="note">With --keep 0 a run keeps all of its checkpoints.</p><div id="inside" data-run="{}"'
            ' data-steps="{}"><p class="empty">The data are read, the network is built …'
            '</p></div><details class="card" id="layers"><summary>Layers: activations, gradients, weights</summary>'
            '<div></div></details><section class="card"><h2>Your own input</h2><div id="own"></div></section>'
            '<div id="seen"></div>',
            len(steps) - 1, at, urlencode({"run": run}), run, " ".join(map(str, steps)),
        )  # fmt: skip
        return show_page(f"Inside {run}", "/inside", make_header(run, about), body, script="inside.js")

    @api.get("/part/inside")
    async def exhibits(run: str, step: int) -> HTMLResponse:
        return show_part(await asyncio.to_thread(call, "draw_inside", place.find_run(run), step))

    @api.get("/part/layers")
    async def layers(run: str, step: int) -> HTMLResponse:
        return show_part(await asyncio.to_thread(call, "draw_layers", place.find_run(run), step))

    @api.get("/part/own")
    async def own_form(run: str, step: int) -> HTMLResponse:
        return show_part(await asyncio.to_thread(call, "draw_form", place.find_run(run), step, file="own_input"))

    @api.post("/part/own")
    async def own(request: Request) -> HTMLResponse:
        try:
            asked = Own.model_validate(await read_body(request))
        except ValueError:
            raise Mistake("run, step, and a text, an image or a row: say what to look at") from None
        given = place.find_run(asked.run), asked.step, asked.text, asked.image, asked.row
        return show_part(await asyncio.to_thread(call, "draw_own", *given, file="own_input"))


def call(name: str, *given: Any, file: str = "inside") -> Any:
    """A function of what looks inside, which brings torch with it."""
    return getattr(bring(file), name)(*given)
