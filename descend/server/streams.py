"""Answers that are given up when nobody waits for them any more: server-sent events, and whole ones.

data: {..}\\n\\n  for each event,  data: [DONE]\\n\\n  after the last one, as OpenAI's clients expect
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.responses import Response

from descend.server.refusal import Refusal

T = TypeVar("T")
GONE = 499  # nobody reads it


class ClientGone(Exception):
    """The connection was closed before the answer was there."""


async def wait_until_gone(receive: Callable[[], Any]) -> None:
    """Until the connection is closed."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def while_waiting(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """The result, or `ClientGone` as soon as the client is."""
    task, gone = asyncio.create_task(work), asyncio.create_task(wait_until_gone(request.receive))
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise ClientGone
    finally:
        await end(task, gone)


async def end(*tasks: asyncio.Task[Any]) -> None:
    for task in tasks:
        task.cancel()
        with suppress(asyncio.CancelledError, Exception):
            await task


class EventStream(Response):
    """Events as they come, then `last`; `leave` is called however it ends."""

    media_type = "text/event-stream"

    def __init__(
        self, events: AsyncIterator[dict[str, Any]], leave: Callable[[], None] = lambda: None, last: str = "[DONE]"
    ):
        super().__init__(None, headers={"Cache-Control": "no-cache", "X-Accel-Buffering": "no"})
        self.events, self.leave, self.last = events, leave, last

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        headers = [(name, value) for name, value in self.raw_headers if name != b"content-length"]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        sending, gone = asyncio.create_task(self.send_all(send)), asyncio.create_task(wait_until_gone(receive))
        try:
            await asyncio.wait({sending, gone}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self.leave()
            await end(sending, gone)

    async def send_all(self, send: Any) -> None:
        try:
            async for event in self.events:
                await self.send_event(send, json.dumps(event, ensure_ascii=False))
            if self.last:
                await self.send_event(send, self.last)
        except Refusal as refusal:  # too late for a status
            await self.send_event(send, json.dumps(refusal.body, ensure_ascii=False))
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def send_event(self, send: Any, data: str) -> None:
        await send({"type": "http.response.body", "body": f"data: {data}\n\n".encode(), "more_body": True})
