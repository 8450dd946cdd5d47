"""The playground: points in a plane, a network of chosen parts, and what it makes of them while it learns."""

from __future__ import annotations

import asyncio
import shlex
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, JSONResponse

from descend.errors import Mistake
from descend.server.json_body import read_body
from descend.web.markup import Html, embed_json, html
from descend.web.parts import make_header
from descend.workbench.frame import show_page
from descend.workbench.lazy import bring

if TYPE_CHECKING:
    from descend.workbench.app import Studio

BODY = Html(
    '<div class="playground"><form id="parts" class="card" autocomplete="off"></form><div><p class="actions">'
    '<button type="button" id="play" class="main">Play</button><button type="button" id="one">One step</button>'
    '<button type="button" id="ten">10 steps</button><button type="button" id="reset">Reset</button>'
    '</p><p><output id="at" aria-live="off">step 0</output></p><section class="card"><canvas id="surface" width="480"'
    ' height="480" tabindex="0" aria-label="the plane: click to draw points"></canvas><p class="legend" id="labels">'
    '</p></section><p class="actions" id="pens"></p></div><div><section class="card" id="course"></section>'
    '<section class="card">'
    '<h2>Neurons <small>what each hidden unit answers over the plane</small></h2><div id="neurons"></div></section>'
    '<section class="card"><h2>The same in Python and in the shell</h2><p class="actions"><button type="button"'
    ' id="write">Write it</button></p><pre id="python" hidden></pre><p class="actions" id="copies" hidden>'
    '<code id="command" tabindex="0"></code><button type="button" data-copy="#command">Copy the command</button>'
    '<button type="button" data-copy="#python">Copy the code</button></p>'
    "</section></div></div>"
)


def add_routes(api: FastAPI, studio: Studio) -> None:
    @api.get("/playground")
    async def page() -> HTMLResponse:
        about = "Activations, initializers, norms and optimizers on two inputs. The address keeps everything."
        choices = await asyncio.to_thread(lambda: play().choices())
        return show_page(
            "Playground", "/playground", make_header("Playground", about), BODY,
            html("{}", embed_json("choices", choices)), script="playground.js",
        )  # fmt: skip

    @api.post("/api/playground")
    async def step(request: Request) -> JSONResponse:
        state, to = await read_sent(request)
        return JSONResponse(await asyncio.to_thread(play().show_step, state, to, studio.place))

    @api.post("/api/playground/python")
    async def python(request: Request) -> JSONResponse:
        state, to = await read_sent(request)
        path, text = await asyncio.to_thread(play().write_python, state, to, studio.place)
        return JSONResponse({"python": text, "command": shlex.join(["descend", "train", str(path)])})


async def read_sent(request: Request) -> tuple[Any, int]:
    sent = await read_body(request)
    to = sent.pop("to", 0)
    if not isinstance(to, int) or isinstance(to, bool):
        raise Mistake("to: the step to go to")
    return play().read_state(sent), to


def play() -> Any:
    """What trains, which brings torch with it."""
    return bring("playground")
