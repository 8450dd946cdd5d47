"""The frame of every page of the studio: the way around, one style and one script for all."""

from __future__ import annotations

from pathlib import Path

from starlette.responses import HTMLResponse

from descend.web.markup import Html, html, join
from descend.web.script import SCRIPT
from descend.web.style import FRAME, STYLE

PAGES = (
    ("/", "Runs"), ("/train", "Train"), ("/use", "Use"), ("/inside", "Look inside"), ("/playground", "Playground"),
    ("/learn", "Learn"), ("/labs", "Labs"),
)  # fmt: skip
STATIC = Path(__file__).parent / "static"
TYPES = {".js": "text/javascript", ".css": "text/css"}


def show_page(title: str, here: str, *body: object, script: str = "") -> HTMLResponse:
    """A whole page; `here` is the entry of the menu that it belongs to, `script` a module of its own."""
    links = [
        html('<a href="{}"{}>{}</a>', path, Html(' aria-current="page"') if path == here else None, name)
        for path, name in PAGES
    ]
    scripts = [f"/static/{name}" for name in ("studio.js", script) if name]
    return HTMLResponse(
        html(
            '<!doctype html>\n<html lang="en"><head>{}<title>{} · descend</title>{}{}</head><body><div class="descend">'
            '<a class="skip" href="#main">To the content</a><nav aria-label="Pages"><a class="home" href="/">'
            'descend</a>{}</nav><main id="main" tabindex="-1">{}</main><p id="said" role="status"></p>'
            "</div></body></html>\n",
            Html('<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'),
            title,
            Html('<link rel="icon" href="data:,"><link rel="stylesheet" href="/static/studio.css">'),
            [html('<script type="module" src="{}"></script>', path) for path in scripts],
            links,
            join(body),
        )
    )


def show_part(*body: object) -> HTMLResponse:
    """A part of a page, which a script puts in its place."""
    return HTMLResponse(join(body), headers={"Cache-Control": "no-store"})


def read_static(name: str) -> tuple[bytes, str] | None:
    """A style or a module, and its type; none of another name."""
    if name == "mouse.js":
        return (SCRIPT + "\nexport { answerMouse };\n").encode(), TYPES[".js"]
    path = STATIC / name
    if path.parent != STATIC or path.suffix not in TYPES or not path.is_file():
        return None
    text = path.read_text(encoding="utf-8")
    return (f"{FRAME}\n{STYLE}\n{text}" if name == "studio.css" else text).encode(), TYPES[path.suffix]
