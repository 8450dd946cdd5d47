"""The proof of the server, on few requests and without a process of its own; and that it can fail."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from proofs import requests
from tests.server.conftest import Running, running, save_writer


@pytest.fixture(scope="module")
def writer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_writer(tmp_path_factory.mktemp("requests") / "gpt", "gpt2", False)


@pytest.fixture(scope="module")
def server(writer: Path) -> Iterator[Running]:
    chats = save_writer(writer.parent / "llama", "llama", True)
    runs = (chats, writer, requests.RELEASED / "cnn-digits", requests.RELEASED / "ppo-cartpole")
    with running(*map(str, runs), rows=16, queue=256) as found:
        yield found


def test_few_requests(server: Running, writer: Path) -> None:
    clients = requests.Clients(server.address.removeprefix("http://"))
    chance = random.Random(1)
    clients.ask([requests.draw(chance) for _ in range(120)])
    assert requests.wait_until_quiet(clients.address)
    assert clients.counts["requests"] == 120
    assert clients.counts["given up"] > 3
    assert clients.counts["refused"] > 3
    assert clients.counts["wrong"] == clients.counts["different"] == 0
    assert requests.compare_with_generate(clients, writer) == 0


def test_what_is_wrong_is_counted(server: Running, writer: Path) -> None:
    clients = requests.Clients(server.address.removeprefix("http://"))
    question = requests.Question("/v1/completions", requests.ask_text(3))
    clients.known["/v1/completions", question.body] = "another text"
    clients.ask([question, question._replace(status=400)])
    assert (clients.counts["different"], clients.counts["wrong"]) == (1, 1)
    assert requests.compare_with_generate(clients, writer) == 1
