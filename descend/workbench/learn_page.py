"""Learn: the catalogue by family, with search; each system's page, with the books' numbers and one's own; traces."""

from __future__ import annotations

import asyncio
import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, JSONResponse

from descend.errors import Mistake
from descend.server.json_body import read_body
from descend.web.markup import Html, html
from descend.web.parts import make_card, make_header, make_note
from descend.workbench.frame import show_page, show_part
from descend.workbench.lazy import IMPORTS
from descend.workbench.run_page import SANDBOX

if TYPE_CHECKING:
    from descend.catalog.coverage import Standing
    from descend.catalog.explanation import Explanation
    from descend.workbench.app import Studio

FOUND = 40  # systems that a search shows
LARGEST = 50_000  # characters of the numbers that are computed with
TONES = {"whole": "good", "core": "good", "tested": "bad"}


def add_routes(api: FastAPI, studio: Studio) -> None:
    @api.get("/learn")
    async def page() -> HTMLResponse:
        about = "The systems of five books: equation, code, the books' numbers computed now, tests."
        field = Html(
            '<p class="actions"><label>Search <input type="search" data-search="#found" data-route="/part/find"'
            ' placeholder="grouped query, why do gradients vanish …" autofocus></label></p>'
        )
        part = Html('<div id="found" data-part="/part/find"><p class="empty">The catalogue is read …</p></div>')
        return show_page("Learn", "/learn", make_header("Learn", about), field, draw_walkthroughs(), part)

    @api.get("/part/find")
    async def find(words: str = "") -> HTMLResponse:
        return show_part(await asyncio.to_thread(draw_found, words.strip()[:200]))

    @api.get("/learn/{slug}")
    async def system(slug: str) -> HTMLResponse:
        return await asyncio.to_thread(show_system, slug)

    @api.post("/api/recompute")
    async def recompute(request: Request) -> JSONResponse:
        asked = await read_body(request)
        return JSONResponse(await asyncio.to_thread(compute, asked.get("example"), asked.get("inputs")))

    @api.get("/trace")
    async def trace(what: str, at: str = "") -> HTMLResponse:
        page = await asyncio.to_thread(draw_trace, what, at)
        return HTMLResponse(page, headers={"Content-Security-Policy": SANDBOX})


def draw_found(words: str) -> Html:
    """All families, or what fits the words."""
    from descend.catalog.search import search
    from descend.catalog.systems import families

    known = read_standings()
    if words:
        return draw_systems("Found", [s.slug for s in search(words, FOUND)], known)
    shown = []
    for family, members in families().items():
        whole = sum(known[s.slug].state == "whole" for s in members)
        title = html("<summary>{} <small>{} systems, {} proven whole</small></summary>", family, len(members), whole)
        shown.append(
            html('<details class="card">{}{}</details>', title, draw_systems("", [s.slug for s in members], known))
        )
    return html("{}", shown)


@cache
def read_standings() -> dict[str, Standing]:
    """How each system stands: all sources are read for that, once."""
    from descend.catalog.coverage import standings

    return {slug: standing for members in standings().values() for slug, standing in members.items()}


def draw_systems(title: str, slugs: list[str], known: dict[str, Standing]) -> Html:
    """A list with names, states and everyday words."""
    from descend.catalog.plain import plain_words
    from descend.catalog.systems import systems

    items = []
    for slug in slugs:
        state = known[slug].state
        items.append(
            html('<li><a href="/learn/{}">{}</a> <span class="state {}">{}</span><br><span class="soft">{}</span></li>',
                 quote(slug), systems()[slug].name, TONES.get(state, "warn"), state, plain_words().get(slug, ""))
        )  # fmt: skip
    body = html('<ul class="systems">{}</ul>', items) if items else make_note("Nothing fits these words.")
    return make_card(title, body) if title else body


def show_system(slug: str) -> HTMLResponse:
    """A system's page: the same as `descend explain`, with what uses it and a place for one's own numbers."""
    with IMPORTS:
        from descend.catalog.explanation import explanation
        from descend.catalog.page import make_body

    found = explanation(slug)
    own = draw_own_numbers(found)
    return show_page(found.system.name, "/learn", make_body(found, draw_uses(found)), own, script="learn.js")


def draw_uses(found: Explanation) -> Html:
    """The labs that test it, and the recipes that train it."""
    from descend.catalog.claims import claims

    slug = found.system.slug
    files = [claim.path for claim in claims(only={slug}).get(slug, [])]
    labs = [name_of(path) for path in files if "/labs/" in path]
    links = [html('<a class="button" href="/labs?{}">lab {}</a>', urlencode({"name": lab}), lab) for lab in labs]
    models = {name_of(path).replace("-", "_") for path in files if "/models/" in path}
    links += [html('<a class="button" href="/train/form?{}">train {}</a>', urlencode({"recipe": name}), name)
              for name in list_recipes(models)]  # fmt: skip
    links += [html('<a class="button" href="/trace?{}" target="_blank" rel="noopener">trace {}</a>',
                   urlencode({"what": name}), name) for name in list_traces(files)]  # fmt: skip
    return html('<p class="actions">{}</p>', links) if links else Html()


def list_traces(files: list[str]) -> list[str]:
    """The models among these files: each can be followed node by node at its smallest size."""
    from descend import models

    return [name for path in files if "/models/" in path and (name := Path(path).stem) in models.names()]


def name_of(path: str) -> str:
    return path.rpartition("/")[2].removesuffix(".py").replace("_", "-")


def list_recipes(models: set[str]) -> list[str]:
    """The recipes whose model is of one of these files."""
    if not models:
        return []
    with IMPORTS:
        from descend import recipes

    return [name for name in recipes.names() if type(recipes.get(name).model).__module__.rpartition(".")[2] in models]


def draw_own_numbers(found: Explanation) -> Html:
    """A form for each worked example that is computed: the inputs can be changed."""
    shown = []
    for outcome in found.examples:
        if outcome.state in ("agrees", "differs"):
            inputs = json.dumps(outcome.example.inputs, indent=1, ensure_ascii=False)
            shown.append(html(
                '<details class="card own" data-example="{}"><summary>{}</summary><textarea rows="8" spellcheck="false"'
                ' aria-label="inputs">{}</textarea><p class="actions"><button type="button">Compute</button></p>'
                "<pre hidden></pre></details>",
                outcome.example.id, outcome.example.title, inputs,
            ))  # fmt: skip
    return html("<h2>With your own numbers</h2>{}", shown) if shown else Html()


def compute(name: Any, inputs: Any) -> dict[str, Any]:
    """A worked example with other inputs, by the library's own code."""
    with IMPORTS:
        from descend.catalog.run import load_all_examples, plain

    functions, _ = load_all_examples()
    if not isinstance(name, str) or name not in functions or not isinstance(inputs, dict):
        raise Mistake("name a worked example and give its inputs as an object")
    if len(json.dumps(inputs)) > LARGEST:
        raise Mistake("these are too many numbers for a page; use the function in Python")
    try:
        return {"values": plain(functions[name](inputs))}
    except Mistake:
        raise
    except Exception as error:  # whatever the numbers are, the page says what is wrong with them
        said = " ".join(str(error).split())[:300]
        raise Mistake(f"these numbers cannot be computed with ({type(error).__name__}: {said})") from None


def draw_walkthroughs() -> Html:
    """Computations to click through, and a field for an expression."""
    form = Html(
        '<form class="actions" action="/trace" target="_blank"><label>Trace an expression <input name="what"'
        ' value="sin(x*y) + x**2"></label><label>at <input name="at" value="x=1 y=2"></label>'
        "<button>Trace</button></form>"
    )
    known = ("2-3-1", "2-3-1-bce", "lstm-cell", "attention-head", "convolution")
    link = '<a class="button" href="/trace?{}" target="_blank">{}</a>'
    links = [html(link, urlencode({"what": name}), name) for name in known]
    title = "Computations, node by node, forward and backward"
    return html('<details class="card"><summary>{}</summary><p class="actions">{}</p>{}</details>', title, links, form)


def draw_trace(what: str, at: str) -> Html:
    with IMPORTS:
        from descend.tracing.expression import read_values
        from descend.tracing.page import make_trace_page
        from descend.tracing.result import make_trace
        from descend.tracing.sources import find_source

    if "/" in what or "\\" in what or len(what) > LARGEST:
        raise Mistake("give an expression or the name of a walkthrough; a run is traced in the shell")
    found = find_source(what, read_values(at.split()), "best")
    return make_trace_page(make_trace(found.fn, found.inputs, "", "", 0, found.title, found.module))
