"""A studio of its own for the tests, in a folder with two short runs; and a browser, where there is one."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import torch

pytest.importorskip("fastapi")

from descend.kinds.changes import change
from descend.recipes import get
from descend.server.port import open_port
from descend.verbs.train import train
from descend.workbench.app import Studio
from descend.workbench.life import Server
from descend.workbench.place import Place

TOKEN = "a-token-for-the-tests-only"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs of few steps: one classifies images, one separates two moons."""
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("studio") / "runs"
    moons = change(get("mlp-moons"), {"steps": 60, "eval_every": 30, "save_every": 30, "threads": 1, "keep": 0})
    train(moons, out=folder / "moons" / "first", quiet=True)
    train(change(moons, {"optim.lr": 0.05}), out=folder / "moons" / "second", quiet=True)
    return folder


class Address:
    """Where a studio listens, and its folder."""

    def __init__(self, studio: Studio, port: int):
        self.studio, self.url = studio, f"http://127.0.0.1:{port}"
        self.runs = studio.place.runs

    def client(self) -> httpx.Client:
        """A client with the studio's cookie."""
        found = httpx.Client(base_url=self.url, timeout=120, headers={"Origin": self.url})
        assert found.get("/", params={"token": TOKEN}).status_code == 303
        return found


@pytest.fixture(scope="module")
def studio(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Address]:
    home = tmp_path_factory.mktemp("home")
    shutil.copytree(trained, home / "runs", symlinks=True)
    listening = open_port("127.0.0.1", 0)
    port = listening.getsockname()[1]
    made = Studio(Place(home / "runs", home), TOKEN, port)
    server = Server(made, "", browser=False)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    for _ in range(200):
        if server.started:
            break
        time.sleep(0.05)
    yield Address(made, port)
    made.stop()
    server.should_exit = True
    thread.join(timeout=20)


@pytest.fixture(scope="module")
def client(studio: Address) -> Iterator[httpx.Client]:
    found = studio.client()
    yield found
    found.close()
