"""Train from a form: choose a recipe, set its flags, check the data and the cost, start. The form gives the command."""

from __future__ import annotations

import asyncio
import re
import shlex
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, JSONResponse
from pydantic import BaseModel

from descend import recipes
from descend.errors import Mistake
from descend.kinds.recipe import Recipe
from descend.kinds.saved import read_saved
from descend.report.history import read_history
from descend.server.bodies import read_body
from descend.studio.fields import Field, list_fields, read_values, write_flags
from descend.studio.frame import show_page, show_part
from descend.studio.place import Place, clean_name
from descend.studio.plan_part import draw_plan
from descend.studio.verbs import ask_verb
from descend.web.markup import Html, html
from descend.web.parts import make_card, make_header, make_note

if TYPE_CHECKING:
    from descend.studio.app import Studio

FIRST = ("data.path", "steps", "batch", "optim.lr", "seed")  # what people change first
BUDGETED = Html(
    '<label class="field"><span>budget <small>--budget</small></span><input name="" data-own="budget"'
    ' placeholder="none, or 90s, 5m, 2h"><small>Longest time: the number of steps is fitted to it.</small></label>'
)
BUDGET = re.compile(r"(\d+\.?\d*[smhd]?)?")


class Asked(BaseModel):
    """What a form sends."""

    recipe: str
    name: str = ""
    budget: str = ""
    values: dict[str, str] = {}


@dataclass(frozen=True)
class Order:
    """A run that is asked for: its words, and where it goes."""

    words: list[str]
    out: Path


def add_routes(api: FastAPI, studio: Studio) -> None:
    place = studio.place

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
        return show_part(await asyncio.to_thread(draw_recipes))

    @api.get("/train/form")
    async def form(recipe: str = "", like: str = "") -> HTMLResponse:
        name, given = await asyncio.to_thread(read_like, place, like) if like else (recipe, {})
        return await asyncio.to_thread(show_form, name, given, like)

    @api.post("/api/command")
    async def command(request: Request) -> JSONResponse:
        asked = await read_asked(request)
        try:
            order = await asyncio.to_thread(read_order, place, asked)
        except Mistake as mistake:  # what is half typed is no failed request
            return JSONResponse({"wrong": str(mistake)})
        return JSONResponse({"command": shlex.join(["descend", *order.words])})

    @api.post("/api/plan")
    async def plan(request: Request) -> HTMLResponse:
        order = await asyncio.to_thread(read_order, place, await read_asked(request))
        words = ["plan", *cut_flags(order.words[1:], ("--out", "--budget")), "--json"]
        return show_part(draw_plan(await ask_verb(words, place.data)))

    @api.post("/api/train")
    async def train(request: Request) -> JSONResponse:
        order = await asyncio.to_thread(read_order, place, await read_asked(request))
        if (order.out / "recipe.json").exists():
            raise Mistake(f"there is a run {place.name_run(order.out)} already: give another name")
        run = place.name_run(order.out)
        studio.queue.add(order.words, run)
        return JSONResponse({"said": f"{run} is in the queue", "go": f"/run?{urlencode({'run': run})}"})

    @api.post("/api/upload")
    async def upload(request: Request, name: str) -> JSONResponse:
        folder = place.own / "files"
        folder.mkdir(parents=True, exist_ok=True)
        path, aside = folder / clean_name(name), folder / f".{time.time_ns()}"
        try:
            with aside.open("wb") as file:
                async for chunk in request.stream():
                    file.write(chunk)
            aside.replace(path)
        finally:
            aside.unlink(missing_ok=True)
        return JSONResponse({"path": str(path), "bytes": path.stat().st_size})


async def read_asked(request: Request) -> Asked:
    try:
        return Asked.model_validate(await read_body(request))
    except ValueError:
        raise Mistake("the form is not one of a recipe: load the page again") from None


def read_order(place: Place, asked: Asked) -> Order:
    """The words of the command that a form stands for."""
    recipe = recipes.get(asked.recipe)
    values = read_values(recipe, asked.values)
    for name, value in values.items():
        if name.rpartition(".")[2] == "path" and isinstance(value, str) and value:
            values[name] = str(place.find_data(value))
    if not BUDGET.fullmatch(asked.budget.strip()):
        raise Mistake(f"--budget {asked.budget!r}: give a time such as 90s, 5m or 2h")
    name = asked.name.strip() or f"{recipes.shorten(asked.recipe)}/{time.strftime('%Y%m%d-%H%M%S')}"
    out = place.check_new_run(name)
    budget = ["--budget", asked.budget.strip()] if asked.budget.strip() else []
    return Order(["train", asked.recipe, *write_flags(recipe, values), *budget, "--out", str(out)], out)


def cut_flags(words: list[str], names: tuple[str, ...]) -> list[str]:
    """The words without these flags and their values."""
    kept = [word for i, word in enumerate(words) if word not in names and (i == 0 or words[i - 1] not in names)]
    return kept


def read_like(place: Place, run: str) -> tuple[str, dict[str, str]]:
    """The recipe of a run, and its values as a form writes them."""
    path = place.find_run(run)
    _, saved, _ = read_saved(read_history(path).recipe, path / "recipe.json")
    name = read_history(path).name
    if name not in recipes.names():
        raise Mistake(f"{run} was trained by a recipe that is not in the library; start it from the shell")
    return name, {field.name: field.show(field.default) for field in list_fields(saved)}


@cache
def draw_recipes() -> Html:
    """Every recipe with its data, size and time."""
    rows = []
    for name in recipes.names():
        recipe = recipes.get(name)
        link = html('<a href="/train/form?{}">{}</a>', urlencode({"recipe": name}), name)
        cells = link, name_kind(recipe), recipe.about, f"{recipe.parameters:,}", recipe.takes
        rows.append(html('<tr><td>{}</td><td>{}</td><td>{}</td><td class="number">{}</td><td>{}</td></tr>', *cells))
    head = Html(
        "<thead><tr><th>recipe</th><th>kind</th><th>what it is</th><th>parameters</th><th>time</th></tr></thead>"
    )
    table = html('<div class="wide"><table>{}<tbody>{}</tbody></table></div>', head, rows)
    return make_card(f"{len(rows)} recipes", table)


def name_kind(recipe: Recipe) -> str:
    """ClassifyImages -> classify images"""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(recipe).__name__).lower()


def show_form(name: str, given: Mapping[str, str], like: str) -> HTMLResponse:
    """The page of the form."""
    recipe = recipes.get(name)
    fields = list_fields(recipe)
    by_name = {field.name: field for field in fields}
    first = [by_name[key] for key in FIRST if key in by_name]
    groups: dict[str, list[Field]] = {}
    for field in fields:
        if field not in first:
            groups.setdefault(field.group.partition(".")[0] or "training", []).append(field)
    main = make_card(
        "Values",
        html('<div class="fields">{}{}{}</div>', draw_name(name), [draw_field(one, given) for one in first], BUDGETED),
    )
    more = [
        html('<details class="card"{}><summary>{} <small>{}</small></summary><div class="fields">{}</div></details>',
             Html(" open") if any(is_changed(one, given) for one in found) else None, group, f"{len(found)} values",
             [draw_field(field, given) for field in found])
        for group, found in groups.items()
    ]  # fmt: skip
    ends = Html(
        '<div class="card"><h2>As a command</h2><p class="actions"><code id="command" tabindex="0"></code>'
        '<button type="button" data-copy="#command">Copy</button></p><p class="warning" id="wrong" hidden></p>'
        '<p class="actions"><button type="button" id="check">Check data, memory and time</button>'
        '<button type="submit" class="main">Start</button></p></div><div id="plan"></div>'
    )
    from_run = make_note(f"With the values of {like}.") if like else None
    form = html('<form id="train" data-recipe="{}">{}{}{}{}</form>', name, from_run, main, ends, more)
    return show_page(name, "/train", make_header(name, recipe.about), form, script="train.js")


def draw_name(recipe: str) -> Html:
    return html(
        '<label class="field"><span>name</span><input name="" data-own="name" placeholder="{}/{}">'
        "<small>The folder of the run, as in digits/first.</small></label>",
        recipe, "the time",
    )  # fmt: skip


def is_changed(field: Field, given: Mapping[str, str]) -> bool:
    return given.get(field.name, field.show(field.default)) != field.show(field.default)


def draw_field(field: Field, given: Mapping[str, str]) -> Html:
    """A value with its flag, range and help."""
    value = given.get(field.name, field.show(field.default))
    about = " ".join(part for part in (field.about, f"({field.bounds})" if field.bounds else "") if part)
    title = field.name.rpartition(".")[2].replace("_", " ")
    drop = Html(' data-drop="1"') if field.name == "data.path" else None
    return html(
        '<label class="field"{}><span>{} <small>{}</small></span>{}<small>{}</small></label>',
        drop, title, field.flag, draw_input(field, value), about,
    )  # fmt: skip


def draw_input(field: Field, value: str) -> Html:
    """What a value is typed into."""
    default = field.show(field.default)
    if field.kind == "yes" or field.choices:
        words = field.choices or ("True", "False")
        option = '<option value="{}"{}>{}</option>'
        shown = [html(option, word, Html(" selected") if word == value else None, word) for word in words]
        return html('<select name="{}" data-default="{}">{}</select>', field.name, default, shown)
    mode = {"whole": "numeric", "number": "decimal"}.get(field.kind, "text")
    hint = "path, or drop a file here" if field.name == "data.path" else ""
    return html(
        '<input name="{}" value="{}" data-default="{}" inputmode="{}" placeholder="{}" autocomplete="off">',
        field.name, value, default, mode, hint,
    )  # fmt: skip
