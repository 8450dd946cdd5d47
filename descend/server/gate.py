"""Who comes in: what every request meets before its route.

host      on a loopback address only this machine's own names: a page of another site cannot talk to the server by
          pointing its name here (DNS rebinding)                                                              403
type      a body is application/json, which a page of another site cannot send unasked                         415
key       Authorization: Bearer KEY, compared in constant time; /health is open                                 401
end       while the server ends, those inside are answered and nobody new is                                    503
body      at most `limit` bytes, whether it says its length or not                                              413
"""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Callable, Mapping
from typing import Any

from descend.server.gauges import Gauges
from descend.server.refusal import Refusal

LOOPBACK = ("localhost", "127.0.0.1", "::1")
OPEN = ("/health",)

Receive = Callable[[], Any]
Send = Callable[[Mapping[str, Any]], Any]


class Gate:
    """The ASGI application around the routes."""

    def __init__(self, app: Any, gauges: Gauges, host: str, key: str, limit: int, routes: frozenset[str]):
        self.app, self.gauges, self.limit, self.routes = app, gauges, limit, routes
        self.loopback = is_loopback(host)
        self.key = digest(key) if key else None
        self.ending = False

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, status, self.gauges.running = time.perf_counter(), 500, self.gauges.running + 1

        async def note(message: Mapping[str, Any]) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            self.check(scope)
            await self.app(scope, self.bound(receive), note)
        except Refusal as refusal:
            await refusal.respond()(scope, receive, note)
        finally:
            self.gauges.running -= 1
            self.gauges.answered(self.name(scope["path"]), status, time.perf_counter() - began)

    def check(self, scope: Any) -> None:
        """Raise what keeps a request out."""
        headers = {name.decode("latin-1").lower(): value for name, value in scope["headers"]}
        if self.loopback and name_of(headers.get("host", b"")) not in LOOPBACK:
            raise Refusal(403, "this server answers to localhost and 127.0.0.1 only: use one of them as the host")
        if self.ending and scope["path"] not in OPEN:
            raise Refusal(503, "the server is ending and takes nothing new: try again later", "ending")
        if self.key is not None and scope["path"] not in OPEN and not self.has_key(headers):
            wrong = "the API key is missing or wrong: send the header Authorization: Bearer KEY"
            raise Refusal(401, wrong, "invalid_api_key")
        if scope["method"] != "POST":
            return
        if headers.get("content-type", b"").partition(b";")[0].strip().lower() != b"application/json":
            raise Refusal(415, "send JSON, with the header Content-Type: application/json")
        length = headers.get("content-length", b"")
        if length.isdigit() and int(length) > self.limit:
            raise self.too_large()

    def has_key(self, headers: Mapping[str, bytes]) -> bool:
        kind, _, key = headers.get("authorization", b"").partition(b" ")
        return kind.lower() == b"bearer" and hmac.compare_digest(hashlib.sha256(key.strip()).digest(), self.key or b"")

    def bound(self, receive: Receive) -> Receive:
        """The body, as long as it is not too large."""
        read = 0

        async def take() -> Any:
            nonlocal read
            message = await receive()
            read += len(message.get("body", b""))
            if read > self.limit:
                raise self.too_large()
            return message

        return take

    def too_large(self) -> Refusal:
        return Refusal(413, f"the body has more than {self.limit:,} bytes: send less at a time", "body_too_large")

    def name(self, path: str) -> str:
        """A route's own name; all other paths share one, so that nobody can fill the memory with names."""
        return path if path in self.routes else "/v1/models/{name}" if path.startswith("/v1/models/") else "other"


def digest(key: str) -> bytes:
    """Of equal length for every key."""
    return hashlib.sha256(key.encode()).digest()


def is_loopback(host: str) -> bool:
    return host in LOOPBACK or host.startswith("127.")


def name_of(host: bytes) -> str:
    """The name in a Host header, without the port."""
    text = host.decode("latin-1").lower().strip()
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return text.partition(":")[0]
