"""The page of the interface: every route, what it takes and answers, and a call to copy. It needs no other page."""

from __future__ import annotations

import json
from typing import Any

from descend.web.markup import Html, html
from descend.web.page import make_page


def make_docs(schema: dict[str, Any], models: list[dict[str, Any]], address: str) -> Html:
    """From OpenAPI's description."""
    served = [html("<li><b>{}</b> {}: {}</li>", card["id"], card["kind"], ", ".join(card["offers"])) for card in models]
    routes = [
        show_route(path, method.upper(), told, address)
        for path, methods in schema["paths"].items()
        for method, told in methods.items()
    ]
    parts = [
        html('<details id="{}"><summary>{}</summary><pre>{}</pre></details>', name, name, json.dumps(part, indent=2))
        for name, part in sorted(schema["components"]["schemas"].items())
    ]
    return make_page(
        "descend serve",
        html("<h1>descend serve</h1><p>The whole description: <a href=/openapi.json>openapi.json</a></p>"),
        html("<h2>Models</h2><ul>{}</ul>", served),
        html("<h2>Routes</h2>{}", routes),
        html("<h2>Forms and answers</h2>{}", parts),
    )


def show_route(path: str, method: str, told: dict[str, Any], address: str) -> Html:
    """A route with its form and its answers."""
    content = told.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    names = [one["$ref"].rpartition("/")[2] for one in content.get("anyOf", [content]) if "$ref" in one]
    forms = [html('<a href="#{}">{}</a> ', name, name) for name in names]
    codes = ", ".join(sorted(told["responses"]))
    body = " -H 'Content-Type: application/json' -d '{..}'" if names else ""
    call = f"curl {'-X POST ' if method == 'POST' else ''}{address}{path}{body}"
    takes = html("<p>takes {}</p>", forms) if forms else None
    about = told.get("description") or told.get("summary", "")
    return html("<h3>{} {}</h3><p>{}</p>{}<p>answers {}</p><pre>{}</pre>", method, path, about, takes, codes, call)
