"""Who comes in: the person who started the studio, from this machine. What `server/gate.py` checks, and

token      stands in the address that the terminal shows; it becomes a cookie that no script can read
file       one that is dropped may be of any type and have `FILE` bytes; all else is JSON of at most `BODY`
pages      load nothing from elsewhere and run no script but the studio's own (Content-Security-Policy)
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, urlencode

from starlette.responses import HTMLResponse, RedirectResponse, Response

from descend.server.gate import Gate, Receive, Rules, Send, digest, read_headers
from descend.server.refusal import Refusal
from descend.web.markup import html
from descend.web.page import make_page

BODY, FILE = 2**22, 2**28
UPLOAD = "/api/upload"
KEPT = 30 * 86400  # seconds that a browser keeps the cookie
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; connect-src"
    " 'self'; media-src 'self' data:; frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'self'"
)
HEADERS = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
)


class StudioGate(Gate):
    """The ASGI application around the pages."""

    def __init__(self, app: Any, token: str, port: int, host: str = "127.0.0.1"):
        super().__init__(app, Rules(host, token, FILE, f"descend-studio-{port}", open=()))

    async def pass_request(self, scope: Any, receive: Receive, send: Send) -> None:
        headers = read_headers(scope)

        async def add_headers(message: Mapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                own = {name for name, _ in message["headers"]}
                added = [pair for pair in HEADERS if pair[0] not in own]
                message = {**message, "headers": [*message["headers"], *added]}
            await send(message)

        if let_in := self.trade_token(scope):
            await let_in(scope, receive, add_headers)
        elif b"text/html" in headers.get("accept", b"") and (told := self.find_refusal(scope)):
            await show_refusal(told)(scope, receive, add_headers)
        else:
            await super().pass_request(scope, receive, add_headers)

    def find_refusal(self, scope: Any) -> Refusal | None:
        """What keeps a page out."""
        try:
            self.check(scope)
        except Refusal as refusal:
            return refusal
        return None

    def trade_token(self, scope: Any) -> Response | None:
        """For an address with the right token: the same without it, and a cookie."""
        query = dict(parse_qsl(scope["query_string"].decode("latin-1")))
        token = query.pop("token", None)
        right = token is not None and hmac.compare_digest(digest(token.encode()), self.key or b"")
        if scope["method"] != "GET" or not right:
            return None
        rest = f"?{urlencode(query)}" if query else ""
        answer = RedirectResponse("/" + scope["path"].lstrip("/") + rest, 303)
        answer.set_cookie(self.rules.cookie, self.rules.key, httponly=True, samesite="strict", max_age=KEPT)
        return answer

    def check_body(self, scope: Any) -> None:
        headers = read_headers(scope)
        if scope["method"] == "POST" and scope["path"] == UPLOAD:
            length = headers.get("content-length", b"")
            if length.isdigit() and int(length) > FILE:
                raise self.too_large()
            return
        super().check_body(scope)
        length = headers.get("content-length", b"0")
        if not length.isdigit() or int(length) > BODY or headers.get("transfer-encoding"):
            raise Refusal(413, f"the form has more than {BODY:,} bytes: drop a file instead", "body_too_large")


def show_refusal(refusal: Refusal) -> Response:
    """A page for people."""
    how = "Open the address that the terminal shows: it holds the token." if refusal.status == 401 else refusal.message
    return HTMLResponse(make_page("descend studio", html("<h1>descend studio</h1><p>{}</p>", how)), refusal.status)
