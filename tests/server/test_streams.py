"""Server-sent events, and answers that nobody waits for any more."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from descend.server.refusal import Refusal
from descend.server.streams import ClientGone, EventStream, while_waiting


class Client:
    """The other side of a connection, which may go after some messages."""

    def __init__(self, stays: int = 10**6):
        self.stays, self.got = stays, list[Any]()
        self.gone = asyncio.Event()

    async def receive(self) -> Any:
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        self.got.append(message)
        if len(self.got) == self.stays:
            self.gone.set()
        await asyncio.sleep(0)

    @property
    def body(self) -> bytes:
        return b"".join(message.get("body", b"") for message in self.got)


async def count(until: int, then: Exception | None = None) -> AsyncIterator[dict[str, Any]]:
    for i in range(until):
        await asyncio.sleep(0.001)
        yield {"i": i, "text": "é"}
    if then:
        raise then


def send(events: AsyncIterator[dict[str, Any]], client: Client, **more: Any) -> int:
    """How often `leave` was called."""
    left: list[int] = []
    asyncio.run(EventStream(events, lambda: left.append(1), **more)({}, client.receive, client.send))
    return len(left)


def test_events_and_the_end() -> None:
    client = Client()
    assert send(count(2), client) == 1
    assert (
        client.body == b'data: {"i": 0, "text": "\xc3\xa9"}\n\ndata: {"i": 1, "text": "\xc3\xa9"}\n\ndata: [DONE]\n\n'
    )
    headers = dict(client.got[0]["headers"])
    assert headers[b"content-type"] == b"text/event-stream; charset=utf-8"
    assert headers[b"cache-control"] == b"no-cache"
    assert b"content-length" not in headers
    assert [message["more_body"] for message in client.got[1:]] == [True, True, True, False]


def test_another_end_or_none() -> None:
    client = Client()
    send(count(1), client, last="")
    assert client.body.endswith(b"}\n\n")
    client = Client()
    send(count(1), client, last="over")
    assert client.body.endswith(b"data: over\n\n")


def test_a_refusal_after_the_status_is_an_event() -> None:
    client = Client()
    assert send(count(1, Refusal(500, "it broke", "model_fault")), client) == 1
    assert b'data: {"error": {"message": "it broke", "type": "server_error"' in client.body
    assert b"[DONE]" not in client.body
    assert client.got[-1] == {"type": "http.response.body", "body": b"", "more_body": False}


def test_a_client_that_goes_ends_the_stream() -> None:
    client = Client(stays=3)
    assert send(count(10_000), client) == 1
    assert len(client.got) < 10


class Waiting:
    """A request whose client goes, or stays."""

    def __init__(self, goes: bool):
        self.goes = goes

    async def receive(self) -> Any:
        await asyncio.sleep(0.01 if self.goes else 60)
        return {"type": "http.disconnect"}


def test_while_the_client_waits_the_work_goes_on() -> None:
    ended: list[str] = []

    async def work(seconds: float) -> str:
        try:
            await asyncio.sleep(seconds)
            return "done"
        finally:
            ended.append("ended")

    assert asyncio.run(while_waiting(Waiting(False), work(0.02))) == "done"  # type: ignore[arg-type]
    with pytest.raises(ClientGone):
        asyncio.run(while_waiting(Waiting(True), work(60)))  # type: ignore[arg-type]
    assert ended == ["ended"] * 2


def test_a_refusal_passes() -> None:
    async def work() -> str:
        raise Refusal(400, "no")

    with pytest.raises(Refusal, match="no"):
        asyncio.run(while_waiting(Waiting(False), work()))  # type: ignore[arg-type]
