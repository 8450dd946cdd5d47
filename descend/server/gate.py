"""Who comes in: what every request meets before its route.

host      on a loopback address only this machine's own names: a page of another site cannot talk to the server by
          pointing its name here (DNS rebinding)                                                              403
origin    a page may call the server that it came from, and no other: programs send no Origin                 403
end       while the server ends, those inside are answered and nobody new is                                  503
key       Authorization: Bearer KEY, compared in constant time, or the cookie of a page; /health is open      401
type      a body is application/json, which a page of another site cannot send unasked                        415
body      at most `body` bytes, whether it says its length or not                                             413
"""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import urlsplit

from descend.server.gauges import Gauges
from descend.server.refusal import Refusal

LOOPBACK = ("localhost", "127.0.0.1", "::1")
PORTS = {"http": 80, "https": 443}

Receive = Callable[[], Any]
Send = Callable[[Mapping[str, Any]], Any]
Headers = Mapping[str, bytes]


@dataclass(frozen=True)
class Rules:
    """Who may enter, and with what."""

    host: str
    """The address where the server listens."""
    key: str = ""
    """What clients have to send; empty: nothing."""
    body: int = 2**25
    """Bytes of a request."""
    cookie: str = ""
    """The cookie in which a page may send the key; empty: none may."""
    open: tuple[str, ...] = ("/health",)
    """Paths that need no key, and answer while the server ends."""


class Gate:
    """The ASGI application around the routes. What passes is counted in `gauges`, by the paths of `routes`."""

    def __init__(self, app: Any, rules: Rules, gauges: Gauges | None = None, routes: frozenset[str] = frozenset()):
        self.app, self.rules, self.gauges, self.routes = app, rules, gauges or Gauges(), routes
        self.loopback = is_loopback(rules.host)
        self.key = digest(rules.key.encode()) if rules.key else None
        self.ending = False

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        elif scope["type"] == "http":
            await self.pass_request(scope, receive, send)
        else:
            await self.pass_socket(scope, receive, send)

    async def pass_request(self, scope: Any, receive: Receive, send: Send) -> None:
        began, status, self.gauges.running = time.perf_counter(), 500, self.gauges.running + 1

        async def note(message: Mapping[str, Any]) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            self.check(scope)
            self.check_body(scope)
            await self.app(scope, self.bound(receive), note)
        except Refusal as refusal:
            await refusal.respond()(scope, receive, note)
        finally:
            self.gauges.running -= 1
            self.gauges.answered(self.name(scope["path"]), status, time.perf_counter() - began)

    async def pass_socket(self, scope: Any, receive: Receive, send: Send) -> None:
        """A WebSocket that is kept out is closed before it opens."""
        try:
            self.check(scope)
        except Refusal:
            await send({"type": "websocket.close", "code": 1008})
        else:
            await self.app(scope, receive, send)

    def check(self, scope: Any) -> None:
        """Raise what keeps a request out."""
        headers, open_to_all = read_headers(scope), scope["path"] in self.rules.open
        host = headers.get("host", b"").decode("latin-1").lower().strip()
        if self.loopback and name_of(host) not in LOOPBACK:
            raise Refusal(403, "this server answers to localhost and 127.0.0.1 only: use one of them as the host")
        if not same_origin(headers.get("origin", b"").decode("latin-1").lower().strip(), host):
            raise Refusal(403, "a page of another site asked: this server answers programs and its own pages only")
        if self.ending and not open_to_all:
            raise Refusal(503, "the server is ending and takes nothing new: try again later", "ending")
        if self.key is not None and not open_to_all and not self.has_key(headers):
            wrong = "the API key is missing or wrong: send the header Authorization: Bearer KEY"
            raise Refusal(401, wrong, "invalid_api_key")

    def check_body(self, scope: Any) -> None:
        """Raise what keeps a body out before it is read."""
        if scope["method"] in ("GET", "HEAD", "OPTIONS"):
            return
        headers = read_headers(scope)
        length, pieces = headers.get("content-length", b"0"), headers.get("transfer-encoding", b"")
        typed = headers.get("content-type", b"").partition(b";")[0].strip().lower() == b"application/json"
        if not typed and (scope["method"] == "POST" or length != b"0" or pieces):
            raise Refusal(415, "send JSON, with the header Content-Type: application/json")
        if length.isdigit() and int(length) > self.rules.body:
            raise self.too_large()

    def has_key(self, headers: Headers) -> bool:
        kind, _, key = headers.get("authorization", b"").partition(b" ")
        sent = key.strip() if kind.lower() == b"bearer" else read_cookie(headers, self.rules.cookie)
        return sent is not None and hmac.compare_digest(digest(sent), self.key or b"")

    def bound(self, receive: Receive) -> Receive:
        """The body, as long as it is not too large."""
        read = 0

        async def take() -> Any:
            nonlocal read
            message = await receive()
            read += len(message.get("body", b""))
            if read > self.rules.body:
                raise self.too_large()
            return message

        return take

    def too_large(self) -> Refusal:
        return Refusal(413, f"the body has more than {self.rules.body:,} bytes: send less at a time", "body_too_large")

    def name(self, path: str) -> str:
        """A route's own name; all other paths share one, so that nobody can fill the memory with names."""
        return path if path in self.routes else "/v1/models/{name}" if path.startswith("/v1/models/") else "other"


def digest(key: bytes) -> bytes:
    """Of equal length for every key."""
    return hashlib.sha256(key).digest()


def is_loopback(host: str) -> bool:
    return host in LOOPBACK or host.startswith("127.")


def read_headers(scope: Any) -> Headers:
    return {name.decode("latin-1").lower(): value for name, value in scope["headers"]}


def read_cookie(headers: Headers, name: str) -> bytes | None:
    try:
        found = SimpleCookie(headers.get("cookie", b"").decode("latin-1")).get(name)
    except CookieError:
        return None
    return None if found is None else found.value.encode("latin-1", "replace")


def name_of(host: str) -> str:
    """The name in a Host header, without the port."""
    return host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]


def same_origin(origin: str, host: str) -> bool:
    """Whether a page of this origin came from this host and port; without an origin it is no page that asks."""
    if not origin:
        return True
    try:
        page, here = urlsplit(origin), urlsplit(f"//{host}")
        standard = PORTS.get(page.scheme)
        asked = (page.port or standard) == (here.port or standard)
        return standard is not None and asked and page.hostname == here.hostname
    except ValueError:  # neither an address nor a port
        return False
