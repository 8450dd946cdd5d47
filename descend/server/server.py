"""The server's life: a port of its own, and an end that loses nothing.

SIGTERM, Ctrl-C    /health says 503 and nobody new is taken; who is inside gets the whole answer, then it ends
a second time      it ends at once
"""

from __future__ import annotations

import errno
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

GRACE = 120  # seconds that those inside have at the end


class Server(uvicorn.Server):
    """uvicorn's, which ends when the last request is answered."""

    def __init__(self, service: Service, ready: Callable[[], None] = lambda: None):
        super().__init__(
            uvicorn.Config(service.gate, log_level="warning", access_log=False, lifespan="on", server_header=False)
        )
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
            self.should_exit = self.force_exit = True

    async def on_tick(self, counter: int) -> bool:
        inside = self.service.gauges.running and time.monotonic() < self.ends_by
        if self.service.gate.ending and not inside:
            self.should_exit = True
        return await super().on_tick(counter)


def open_port(host: str, port: int) -> socket.socket:
    """A socket that listens there, or a mistake that says why not."""
    if not 0 <= port < 65536:
        raise Mistake(f"--port {port}: give 1 to 65535, or 0 for any that is free")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    found = socket.socket(family, socket.SOCK_STREAM)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((host, port))
    except OSError as error:
        found.close()
        if error.errno == errno.EADDRINUSE:
            raise Mistake(
                f"--port {port} is taken by another program; give another, or 0 for any that is free"
            ) from None
        if error.errno == errno.EACCES:
            raise Mistake(f"--port {port} is the system's; give one from 1024 on") from None
        raise Mistake(f"--host {host}: this machine has no such address ({error.strerror or error})") from None
    return found


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


def run_server(service: Service, host: str, port: int, note: Callable[[str], Any] = print) -> None:
    """Serve until a signal ends it."""
    listening = open_port(host, port)
    shown = f"[{host}]" if ":" in host else host
    address = f"http://{shown}:{listening.getsockname()[1]}"

    def ready() -> None:
        for one in service.served.values():
            note(describe(one))
        note(f"{address}  (OpenAI's base_url: {address}/v1; the page of routes: {address}/docs)")
        sys.stdout.flush()

    Server(service, ready).run(sockets=[listening])
