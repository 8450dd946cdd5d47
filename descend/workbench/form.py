"""The form of a recipe, and the command that it stands for."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from fastapi.responses import HTMLResponse
from pydantic import BaseModel

from descend import recipes
from descend.errors import Mistake
from descend.kinds.recipe import Recipe
from descend.kinds.saved import read_saved
from descend.report.history import read_history
from descend.report.training_sheet import has_sheet
from descend.web.markup import Html, html
from descend.web.parts import make_card, make_header, make_note
from descend.workbench.fields import Field, list_fields, read_values, write_flags
from descend.workbench.frame import show_page
from descend.workbench.place import Place

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
    draws: bool = False
    """Whether `plan` can draw its first training images."""


def read_order(place: Place, sent: Mapping[str, Any]) -> Order:
    """The words of the command that a form stands for."""
    try:
        asked = Asked.model_validate(sent)
    except ValueError:
        raise Mistake("the form is not one of a recipe: load the page again") from None
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
    return Order(
        ["train", asked.recipe, *write_flags(recipe, values), *budget, "--out", str(out)],
        out,
        has_sheet(recipe),
    )


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
    hint = "a path, or drop it here" if field.name == "data.path" else ""
    return html(
        '<input name="{}" value="{}" data-default="{}" inputmode="{}" placeholder="{}" autocomplete="off">',
        field.name, value, default, mode, hint,
    )  # fmt: skip
