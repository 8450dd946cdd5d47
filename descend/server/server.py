"""The server's life: a port of its own, and an end that loses nothing.

SIGTERM, Ctrl-C    /health says 503 and nobody new is taken; who is inside gets the whole answer, then it ends
a second time      it ends at once
"""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
import time
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

import uvicorn

from descend.errors import Mistake
from descend.server.app import Service
from descend.server.gate import is_loopback
from descend.server.served import Limits, describe, open_all

GRACE = 120.0  # seconds that those inside have at the end
CLOSING = 2  # seconds after which connections that are still open are cut


def is_news(record: logging.LogRecord) -> bool:
    """For the log: not that an answer was cut off because the server had to end."""
    return not (record.exc_info and isinstance(record.exc_info[1], asyncio.CancelledError))


class Server(uvicorn.Server):
    """uvicorn's, which ends when the last request is answered."""

    def __init__(self, service: Service, ready: Callable[[], None] = lambda: None):
        super().__init__(
            uvicorn.Config(
                service.gate, log_level="warning", access_log=False, lifespan="on", server_header=False,
                timeout_graceful_shutdown=CLOSING,
            )
        )  # fmt: skip
        logging.getLogger("uvicorn.error").addFilter(is_news)
        self.service, self.ready = service, ready
        self.ends_by = 0.0

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """The first signal asks, the second insists."""
        self.end(now=self.service.gate.ending)

    def end(self, now: bool = False) -> None:
        """Take nothing new, and end when nobody is inside; or at once."""
        self.service.gate.ending = True
        self.ends_by = time.monotonic() + GRACE
        if now:
            self.should_exit, self.config.timeout_graceful_shutdown = True, 0

    async def on_tick(self, counter: int) -> bool:
        inside = self.service.gauges.running and time.monotonic() < self.ends_by
        if self.service.gate.ending and not inside:
            self.should_exit = True
        return await super().on_tick(counter)


def check_safe(host: str, key: str) -> None:
    """Whoever can reach it can use it: beyond this machine it needs a key."""
    if not is_loopback(host) and not key:
        raise Mistake(f"--host {host} lets other machines in: give --api-key KEY, which they have to send")
    if key and (not key.isprintable() or key != key.strip() or not key.isascii()):
        raise Mistake("--api-key: plain letters, digits and signs, without spaces around them")


def open_service(runs: Sequence[str], checkpoint: str | int, limits: Limits, host: str, key: str) -> Service:
    """All runs, ready to answer."""
    check_safe(host, key)
    return Service(open_all(runs, checkpoint, limits), limits, host, key)


def run_server(service: Service, listening: socket.socket, note: Callable[[str], Any] = print) -> None:
    """Serve at an open port until a signal ends it."""
    host, port = listening.getsockname()[:2]
    address = f"http://{f'[{host}]' if ':' in host else host}:{port}"

    def ready() -> None:
        for one in service.served.values():
            note(describe(one))
        note(f"{address}  (OpenAI's base_url: {address}/v1; the page of routes: {address}/docs)")
        sys.stdout.flush()

    try:
        Server(service, ready).run(sockets=[listening])
    finally:
        service.close()
