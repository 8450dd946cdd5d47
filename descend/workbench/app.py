"""The application: the pages and their parts, behind the gate. Every file of pages adds its own routes.

GET  / /run /compare /train /train/form /use /inside /playground /learn /labs     pages
GET  /part/…        parts of pages, as they are now
GET  /events        what changes in the runs, as it does (server-sent events)
POST /api/…         start, check, stop, resume, drop a file
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException

from descend.errors import Mistake
from descend.server.refusal import Refusal
from descend.workbench import (
    compare_page,
    dropped,
    film_page,
    inside_page,
    labs_page,
    learn_page,
    playground_page,
    run_list,
    run_page,
    space_page,
    train_page,
    use_page,
)
from descend.workbench.frame import read_static
from descend.workbench.gate import StudioGate
from descend.workbench.jobs import Queue
from descend.workbench.opened import Opened
from descend.workbench.place import Place

PARTS = (
    run_list, run_page, compare_page, train_page, dropped, use_page, film_page, space_page, learn_page, labs_page,
    inside_page, playground_page,
)  # fmt: skip


class Studio:
    """What the pages share: the folders, the queue, and whether the studio ends."""

    def __init__(self, place: Place, token: str, port: int, width: int = 1):
        self.place, self.token, self.queue = place, token, Queue(place, width)
        self.opened = Opened(place)
        self.ending = False
        self.api = make_api(self)
        self.gate = StudioGate(self.api, token, port)

    def stop(self) -> None:
        """Let the streams of events end."""
        self.ending = True

    @asynccontextmanager
    async def live(self, _: FastAPI) -> AsyncIterator[None]:
        self.queue.start()
        yield
        await asyncio.to_thread(self.queue.close)
        await self.opened.close()


def make_api(studio: Studio) -> FastAPI:
    """All routes."""
    api = FastAPI(title="descend studio", docs_url=None, redoc_url=None, openapi_url=None, lifespan=studio.live)
    add_handlers(api)
    for part in PARTS:
        part.add_routes(api, studio)

    api.mount("/model", studio.opened)

    @api.get("/static/{name}")
    async def static(name: str) -> Response:
        found = read_static(name)
        if found is None:
            raise HTTPException(404)
        return Response(found[0], media_type=found[1], headers={"Cache-Control": "no-cache"})

    return api


def add_handlers(api: FastAPI) -> None:
    """What goes wrong is told in one line: to a person on a page, to a script as JSON."""

    async def tell(request: Request, status: int, message: str) -> Response:
        from descend.web.parts import make_header, make_warning
        from descend.workbench.frame import show_page

        if "text/html" in request.headers.get("accept", ""):
            page = show_page("descend", "", make_header("That did not work"), make_warning(message))
            page.status_code = status
            return page
        return JSONResponse({"error": message}, status)

    async def explain(request: Request, error: Any) -> Response:
        return await tell(request, 400, str(error))

    async def refuse(request: Request, error: Any) -> Response:
        return await tell(request, error.status, error.message)

    async def translate(request: Request, error: Any) -> Response:
        said = "there is no such page" if error.status_code == 404 else str(error.detail).lower()
        return await tell(request, error.status_code, said)

    async def fail(request: Request, error: Any) -> Response:
        said = f"{type(error).__name__}: this is our fault; the terminal of descend studio says more"
        return await tell(request, 500, said)

    for kind, handler in ((Mistake, explain), (Refusal, refuse), (HTTPException, translate), (Exception, fail)):
        api.add_exception_handler(kind, handler)
