"""Moving pictures of a model at work: episodes of a policy, and the way from one sample to another."""

from __future__ import annotations

import base64
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field

from descend.errors import Mistake
from descend.server.json_body import read_body
from descend.workbench.verbs import ask_verb, run_verb

if TYPE_CHECKING:
    from descend.workbench.app import Studio


Form = TypeVar("Form", bound=BaseModel)
Word = Annotated[str, Field(max_length=1000, pattern=r"^([^-].*)?$")]  # never a flag


class AskedFilm(BaseModel):
    """Episodes: of an environment (`descend play`), or of a simulated arm (`descend act`)."""

    run: str
    step: int
    verb: Literal["play", "act"] = "play"
    instruction: Word = ""
    seed: int = 0
    episodes: int = Field(1, ge=1, le=20)


class AskedWalk(BaseModel):
    """The way between the first samples of two seeds (`descend interpolate`)."""

    run: str
    step: int
    seed: int = 0
    to: int = 1
    count: int = Field(8, ge=2, le=64)
    steps: int = Field(0, ge=0)
    label: Word = ""
    prompt: Word = ""
    method: Word = ""


def add_routes(api: FastAPI, studio: Studio) -> None:
    place = studio.place

    @api.post("/api/film")
    async def film(request: Request) -> JSONResponse:
        asked = check(AskedFilm, await read_body(request), "run, seed and episodes: say what to play")
        path = aside("gif")
        words = [asked.verb, str(place.find_run(asked.run)), *([asked.instruction] if asked.instruction else [])]
        words += ["-n", str(asked.episodes), "--seed", str(asked.seed), "--checkpoint", str(asked.step), "--json"]
        try:
            found = await ask_verb([*words, "--out" if asked.verb == "play" else "--film", str(path)], place.data)
            return JSONResponse({"episodes": found, "film": embed(path, "gif")})
        finally:
            path.unlink(missing_ok=True)

    @api.post("/api/walk")
    async def walk(request: Request) -> JSONResponse:
        asked = check(AskedWalk, await read_body(request), "run, seed, to and count: say from where to where")
        path = aside("png")
        words = ["interpolate", str(place.find_run(asked.run)), "--checkpoint", str(asked.step), "--out", str(path)]
        words += ["--seed", str(asked.seed), "--to", str(asked.to), "-n", str(asked.count), "--steps", str(asked.steps)]
        for flag, value in (("--class", asked.label), ("--prompt", asked.prompt), ("--method", asked.method)):
            words += [flag, value] if value else []
        try:
            said = await run_verb(words, place.data)
            return JSONResponse({"image": embed(path, "png")} if path.exists() else {"said": said})
        finally:
            path.unlink(missing_ok=True)

    def aside(suffix: str) -> Path:
        place.own.mkdir(parents=True, exist_ok=True)
        return place.own / f"film-{time.time_ns()}.{suffix}"


def check(form: type[Form], sent: dict[str, Any], wanted: str) -> Form:
    """What was sent, or a mistake that says what should have been."""
    try:
        return form.model_validate(sent)
    except ValueError:
        raise Mistake(wanted) from None


def embed(path: Path, kind: str) -> str:
    return f"data:image/{kind};base64," + base64.b64encode(path.read_bytes()).decode()
