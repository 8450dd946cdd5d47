"""The frame of a page: one file that needs no other, in light and in dark."""

from __future__ import annotations

import os
from pathlib import Path

from descend.errors import naming
from descend.web.markup import Html, html, join
from descend.web.script import SCRIPT
from descend.web.style import FRAME, STYLE


def make_page(title: str, *body: Html) -> Html:
    """A whole document around a body."""
    head = Html('<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">')
    return html(
        '<!doctype html>\n<html lang="en"><head>{}<title>{}</title><style>{}</style></head><body>{}</body></html>\n',
        head,
        title,
        Html(FRAME),
        make_fragment(*body),
    )


def make_fragment(*body: Html) -> Html:
    """What a notebook shows, with its own style, which touches nothing else there."""
    inner = join(body)
    script = html("<script>{{{}}}</script>", Html(SCRIPT)) if "data-hover=" in inner or "data-cells=" in inner else ""
    return html('<style>{}</style><div class="descend"><main>{}</main>{}</div>', Html(STYLE), inner, script or None)


def write_page(path: Path, page: Html) -> Path:
    """Write it aside and rename it, so that a reader never meets half a page."""
    aside = path.with_name(f".{path.name}")
    with naming(path):
        aside.write_text(page, encoding="utf-8")
    os.replace(aside, path)
    return path
