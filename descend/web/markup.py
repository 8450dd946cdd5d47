"""Markup that cannot be forged: whatever is filled into a template is escaped, unless it is markup already.

html("<h2>{}</h2>{}", title, body):  `title` is a str and is escaped, `body` is Html and stays as it is
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from html import escape
from typing import Any


class Html(str):
    """Text that is markup already."""

    __slots__ = ()


def html(template: str, *values: object) -> Html:
    """The template with its {} filled in: text is escaped, numbers are formatted, lists are laid end to end."""
    return Html(template.format(*map(fill, values)))


def fill(value: object) -> Any:
    """What stands in the page for a value; a number stays one, so that {:.1f} works."""
    if isinstance(value, Html | int | float):
        return value
    if value is None:
        return Html()
    if isinstance(value, list | tuple):
        return join(value)
    return Html(escape(str(value)))


def join(parts: Iterable[object]) -> Html:
    """Pieces of a page, one after the other."""
    return Html("".join(str(fill(part)) for part in parts))


def embed_json(name: str, value: Any) -> Html:
    """Data for a script: an element with this id, which no value in it can close."""
    text = Html(json.dumps(value, ensure_ascii=False).replace("<", "\\u003c"))
    return html('<script type="application/json" id="{}">{}</script>', name, text)
