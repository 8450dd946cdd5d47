"""What pages are made of: heading, cards, headline figures, tables, legends, images, warnings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from descend.web.markup import Html, html


def make_header(title: str, about: str = "", state: str = "") -> Html:
    """The title, a word on how it stands ("finished", "supported") and what it is about."""
    badge = html('<span class="state {}">{}</span>', state, state) if state else None
    said = html("<p>{}</p>", about) if about else None
    return html("<header><h1>{}</h1>{}{}</header>", title, badge, said)


def make_card(title: str, *body: object, note: str = "", style: str = "") -> Html:
    """A box with a title; `style` adds classes such as "half"."""
    said = html('<p class="note">{}</p>', note) if note else None
    name = f"card {style}".strip()
    return html('<section class="{}"><h2>{}</h2>{}{}</section>', name, title, said, list(body))


def make_small_card(title: str, *body: object) -> Html:
    return html('<section class="card"><h3>{}</h3>{}</section>', title, list(body))


def make_row(cards: Sequence[Html], columns: int = 3) -> Html:
    """Small cards side by side."""
    return html('<div class="small row{}">{}</div>', columns, list(cards)) if cards else Html()


def make_figures(cells: Iterable[tuple[str, str, str]]) -> Html:
    """The headline: (value, what it is out of, name) in large letters."""
    shown = [html("<div><b>{}<small>{}</small></b><span>{}</span></div>", *cell) for cell in cells]
    return html('<div class="figures">{}</div>', shown)


def make_warning(text: str) -> Html:
    return html('<p class="warning">{}</p>', text)


def make_note(text: str) -> Html:
    return html('<p class="note">{}</p>', text)


def make_table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> Html:
    """A table; columns of numbers stand to the right."""
    lines = [list(row) for row in rows]
    right = [" class=number" if all(map(is_number, column)) else "" for column in zip(*lines, strict=True)]
    right += [""] * (len(columns) - len(right))
    head = [html("<th{}>{}</th>", Html(side), str(name)) for name, side in zip(columns, right, strict=True)]
    digits = [find_digits(column) for column in zip(*lines, strict=True)]
    body = [html("<tr>{}</tr>", [make_cell(v, d) for v, d in zip(row, digits, strict=True)]) for row in lines]
    top = html("<thead><tr>{}</tr></thead>", head) if any(columns) else None
    return html('<div class="wide"><table>{}<tbody>{}</tbody></table></div>', top, body)


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def find_digits(column: Sequence[Any]) -> str:
    """How the numbers of a column are written: shares all with four digits after the point, others with five in all."""
    shares = [value for value in column if isinstance(value, float)]
    return ".4f" if len(shares) == len(column) and all(v == 0 or 0.001 <= abs(v) <= 1 for v in shares) else ".5g"


def make_cell(value: Any, digits: str = ".5g") -> Html:
    """A cell: whole numbers with commas, others with these digits, text escaped."""
    if not is_number(value):
        return html("<td>{}</td>", value if isinstance(value, Html) else str(value))
    return html('<td class="number">{}</td>', f"{value:,}" if isinstance(value, int) else f"{value:{digits}}")


def make_pairs(parts: Iterable[tuple[str, str, dict[str, str]]]) -> Html:
    """Small tables of names and values, side by side: (title, remark, {name: value})."""
    cells = []
    for title, remark, values in parts:
        rows = [html("<tr><td>{}</td><td>{}</td></tr>", name, value) for name, value in values.items()]
        head = html("<h3>{} <small>{}</small></h3>", title, remark) if title else None
        cells.append(html("<div>{}<table>{}</table></div>", head, rows))
    return html('<div class="values">{}</div>', cells)


def make_legend(names: Iterable[tuple[str, int]]) -> Html:
    """Names beside the colours of the palette."""
    return html('<p class="legend">{}</p>', [html('<span class="c{}"><i></i>{}</span>', k, n) for n, k in names])


def make_images(sources: Sequence[str], captions: Sequence[object], side: int) -> Html:
    """A grid of images (data URLs) of this width in pixels, each with its caption."""
    cells = [
        html('<figure><img src="{}" alt=""><figcaption>{}</figcaption></figure>', source, str(caption))
        for source, caption in zip(sources, captions, strict=True)
    ]
    return html('<div class="images" style="--side:{}px">{}</div>', side, cells)
