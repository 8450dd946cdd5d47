"""What the server refuses, in the words and with the body that clients of OpenAI's interface understand.

{"error": {"message": what is wrong and the fix, "type": .., "param": the field or null, "code": a short name or null}}
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel
from starlette.responses import JSONResponse

TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
RETRY = "1"  # seconds after which a client may ask again


class Told(BaseModel):
    """What is wrong."""

    message: str
    type: str
    param: str | None
    code: str | None


class ErrorBody(BaseModel):
    """An answer that is a refusal."""

    error: Told


class Refusal(Exception):
    """A request that is not answered: HTTP status and reason."""

    def __init__(self, status: int, message: str, code: str | None = None, param: str | None = None):
        super().__init__(message)
        self.status, self.message, self.code, self.param = status, message, code, param

    @property
    def body(self) -> dict[str, Any]:
        kind = TYPES.get(self.status, "server_error" if self.status >= 500 else "invalid_request_error")
        told = Told(message=self.message, type=kind, param=self.param, code=self.code)
        return ErrorBody(error=told).model_dump()

    @property
    def headers(self) -> Mapping[str, str]:
        if self.status == 401:
            return {"WWW-Authenticate": "Bearer"}
        return {"Retry-After": RETRY} if self.status in (429, 503) else {}

    def respond(self) -> JSONResponse:
        return JSONResponse(self.body, self.status, self.headers)
