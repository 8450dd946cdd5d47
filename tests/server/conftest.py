"""A real server on a free port, with two tiny random models that write: one with a chat template, one without."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from descend.models import model_class
from descend.text.chat_template import add_roles
from descend.text.tokenizer import Tokenizer

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")

TEXT = "the quick brown fox jumps over the lazy dog while five boxing wizards juggle quietly at dawn. " * 3
CONTEXT = 96


def save_writer(folder: Path, name: str, chat: bool, context: int = CONTEXT) -> Path:
    """A tiny random model, with weights large enough that its texts differ."""
    tokenizer = Tokenizer.bpe(TEXT, 300)
    if chat:
        tokenizer = add_roles(tokenizer)
    module = __import__(f"descend.models.{name}", fromlist=["TINY"])
    torch.manual_seed(0)
    model = model_class(name)(replace(module.TINY, vocab=tokenizer.vocab, context=context))
    for p in model.parameters():
        if p.dim() > 1:
            nn.init.normal_(p, std=0.2)
    folder.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(folder)
    tokenizer.save(folder)
    return folder


class Running:
    """A server in a thread of this process."""

    def __init__(self, service: Any):
        from descend.server.port import open_port
        from descend.server.server import Server

        self.service = service
        socket = open_port("127.0.0.1", 0)
        self.address = f"http://127.0.0.1:{socket.getsockname()[1]}"
        self.server = Server(service)
        self.thread = threading.Thread(target=self.server.run, args=([socket],), daemon=True)
        self.thread.start()
        wait_for(lambda: self.server.started)

    def stop(self) -> None:
        self.server.end()
        self.thread.join(20)
        assert not self.thread.is_alive()
        self.service.close()


def wait_for(found: Any, seconds: float = 20.0) -> None:
    """Until something is true, or the test fails."""
    end = time.monotonic() + seconds
    while not found():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.005)


@contextmanager
def running(*runs: str, key: str = "", **limits: int) -> Iterator[Running]:
    from descend.server.served import Limits
    from descend.server.server import open_service

    found = Running(open_service(runs, "best", Limits(**limits), "127.0.0.1", key))
    try:
        yield found
    finally:
        found.stop()


@pytest.fixture(scope="session")
def writers(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Folders of a LLaMA that chats and of a GPT-2 that does not."""
    root = tmp_path_factory.mktemp("writers")
    return save_writer(root / "llama", "llama", True), save_writer(root / "gpt", "gpt2", False)


@pytest.fixture(scope="session")
def server(writers: tuple[Path, Path]) -> Iterator[Running]:
    with running(*map(str, writers), rows=8, queue=256) as found:
        yield found
