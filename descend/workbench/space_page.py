"""Search and map: what lies near to a text or an image among the run's data, a folder of images, or texts."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse
from pydantic import BaseModel

from descend.errors import Mistake
from descend.server.json_body import read_body
from descend.web.markup import Html
from descend.workbench.frame import show_part
from descend.workbench.lazy import bring

if TYPE_CHECKING:
    from descend.workbench.app import Studio


class Asked(BaseModel):
    """What the page sends."""

    run: str
    step: int
    source: Literal["data", "folder", "texts"] = "data"
    path: str = ""
    texts: str = ""
    by: Literal["pca", "tsne"] = "tsne"
    text: str = ""
    image: str = ""


def add_routes(api: FastAPI, studio: Studio) -> None:
    @api.post("/part/map")
    async def chart(request: Request) -> HTMLResponse:
        asked, run, path = await read(request)
        return show_part(await asyncio.to_thread(draw_map, asked, run, path))

    @api.post("/part/near")
    async def near(request: Request) -> HTMLResponse:
        asked, run, path = await read(request)
        return show_part(await asyncio.to_thread(draw_near, asked, run, path))

    async def read(request: Request) -> tuple[Asked, Path, str]:
        sent = await read_body(request)
        try:
            asked = Asked.model_validate(sent)
        except ValueError:
            raise Mistake("run, step and source: say what to look at") from None
        if asked.source == "folder" and not asked.path.strip():
            raise Mistake("name a folder of images, or drop one")
        path = str(studio.place.find_data(asked.path.strip())) if asked.source == "folder" else ""
        return asked, studio.place.find_run(asked.run), path


def draw_map(asked: Asked, run: Path, path: str) -> Html:
    drawn: Html = parts().draw_map(open_space(asked, run, path), asked.by)
    return drawn


def draw_near(asked: Asked, run: Path, path: str) -> Html:
    space = open_space(asked, run, path)
    query = spaces().encode_query(space, asked.text, asked.image)
    drawn: Html = parts().draw_found(space, space.find_near(query, parts().FOUND))
    return drawn


def open_space(asked: Asked, run: Path, path: str) -> Any:
    lines = tuple(line.strip() for line in asked.texts.splitlines() if line.strip())
    given = spaces().Given(asked.source, path, lines if asked.source == "texts" else ())
    return spaces().open_space(run, asked.step, given)


def spaces() -> Any:
    """What embeds, which brings torch with it."""
    return bring("space")


def parts() -> Any:
    return bring("space_part")
