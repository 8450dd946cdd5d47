"""The studio's life: a port of its own, a token for the person who started it, and an end that stops no run."""

from __future__ import annotations

import asyncio
import secrets
import sys
import webbrowser
from pathlib import Path
from types import FrameType
from typing import Any

import uvicorn

from descend.server.port import open_port
from descend.workbench.app import Studio
from descend.workbench.place import Place

HOST = "127.0.0.1"


class Server(uvicorn.Server):
    """uvicorn's, which tells the pages' streams to end before it waits for them."""

    def __init__(self, studio: Studio, address: str, browser: bool):
        super().__init__(uvicorn.Config(
            studio.gate, log_level="warning", access_log=False, lifespan="on", server_header=False,
            timeout_graceful_shutdown=3,
        ))  # fmt: skip
        self.studio, self.address, self.browser = studio, address, browser

    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        print(f"descend studio: {self.address}")
        print(f"runs are in {self.studio.place.runs}; they go on when the studio ends (Ctrl-C)")
        sys.stdout.flush()
        if self.browser:
            await asyncio.to_thread(webbrowser.open, self.address)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self.studio.stop()
        super().handle_exit(sig, frame)


def run_studio(runs: Path, data: Path, port: int, token: str, width: int, browser: bool) -> None:
    """Serve until a signal ends it."""
    runs.mkdir(parents=True, exist_ok=True)
    listening = open_port(HOST, port)
    port = listening.getsockname()[1]
    studio = Studio(Place(runs, data), token or secrets.token_urlsafe(24), port, width)
    Server(studio, f"http://{HOST}:{port}/?token={studio.token}", browser).run(sockets=[listening])
