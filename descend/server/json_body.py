"""The body of a request as one JSON object."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from starlette.requests import Request

from descend.server.refusal import Refusal

LARGE = 2**16  # bytes that are parsed beside the loop, which goes on with others


def parse_body(body: bytes) -> dict[str, Any]:
    """One JSON object of texts that can be written down again."""
    try:
        value = json.loads(body)
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise Refusal(400, "a text holds half a character (a surrogate): send whole ones", "invalid_json") from None
    except (ValueError, RecursionError):
        raise Refusal(400, "the body is not JSON that can be read: send one object", "invalid_json") from None
    if not isinstance(value, dict):
        raise Refusal(400, "the body is not a JSON object: send one", "invalid_json")
    return value


async def read_body(request: Request) -> dict[str, Any]:
    body = await request.body()
    return parse_body(body) if len(body) < LARGE else await asyncio.to_thread(parse_body, body)
