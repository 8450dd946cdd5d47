"""The page of a lab: the claim, the figure, what was measured, and the verdict."""

from __future__ import annotations

from typing import Any

from descend.web.markup import Html, html
from descend.web.page import make_page
from descend.web.parts import make_card, make_header, make_table


def make_lab_page(
    found: dict[str, Any], drawing: str, tables: list[dict[str, list[Any]]], facts: dict[str, Any]
) -> Html:
    """`found` is what `descend lab --json` prints, `drawing` an SVG file; tables are columns by name, facts numbers."""
    figure = html('<section class="card paper">{}</section>', Html(drawing[drawing.index("<svg") :]))
    measured = [
        make_card("Measured", make_table(list(columns), [list(row) for row in zip(*columns.values(), strict=True)]))
        for columns in tables
    ]
    single = make_card("Facts", make_table(["", ""], list(facts.items()))) if facts else Html()
    footer = html("<footer>seed {}, budget {:g} s</footer>", found["seed"], found["budget"])
    head = make_header(found["lab"], found["claim"], found["verdict"])
    return make_page(found["lab"], head, figure, *measured, single, footer)
