"""The page of a lab: the claim as printed and as tested, the figure, the evidence, what was measured, the verdict."""

from __future__ import annotations

from typing import Any

from descend.report.evidence import make_evidence, make_statement
from descend.web.markup import Html, html
from descend.web.page import make_page
from descend.web.parts import make_card, make_header, make_table


def make_lab_page(
    found: dict[str, Any], drawing: str, tables: list[dict[str, list[Any]]], facts: dict[str, Any]
) -> Html:
    """`found` is what `descend lab --json` prints, `drawing` an SVG file; tables are columns by name, facts numbers."""
    figure = (
        html('<section class="card paper">{}</section>', Html(drawing[drawing.index("<svg") :])) if drawing else None
    )
    measured = [
        make_card("Measured", make_table(list(columns), [list(row) for row in zip(*columns.values(), strict=True)]))
        for columns in tables
    ]
    single = make_card("Facts", make_table(["", ""], list(facts.items()))) if facts else Html()
    head = make_header(found["lab"], found["claim"], found["verdict"])
    body = (make_statement(found), make_evidence(found), figure or Html(), *measured, single)
    return make_page(found["lab"], head, *body, html("<footer>{}</footer>", found["made"]))
