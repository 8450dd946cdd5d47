"""Reading the body of a request: JSON, checked by the form of its route; and how the forms stand in OpenAPI."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic.json_schema import models_json_schema
from starlette.requests import Request

from descend.server.forms import Form, explain_form
from descend.server.refusal import Refusal

F = TypeVar("F", bound=Form)
LARGE = 2**16  # bytes that are parsed beside the loop, which goes on with others
REFERENCE = "#/components/schemas/{model}"


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


def check_form(form: type[F], value: dict[str, Any]) -> F:
    try:
        return form.model_validate(value)
    except ValidationError as error:
        found = error.errors(include_url=False, include_context=False, include_input=False)
        raise explain_form(found, tuple(form.model_fields)) from None


async def read_form(form: type[F], request: Request) -> F:
    return check_form(form, await read_body(request))


# OpenAPI


def takes(*forms: type[Form]) -> dict[str, Any]:
    """The body of a route: one of these forms."""
    found = [{"$ref": REFERENCE.format(model=form.__name__)} for form in forms]
    schema = found[0] if len(found) == 1 else {"anyOf": found}
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


def describe_parts(parts: Sequence[type[BaseModel]], models: Sequence[str]) -> dict[str, Any]:
    """The schemas of forms and answers; the names of models are those that are served."""
    found = models_json_schema([(part, "validation") for part in parts], ref_template=REFERENCE)[1]
    schemas: dict[str, Any] = found["$defs"]
    for part in parts:
        if issubclass(part, Form) and models:
            schemas[part.__name__]["properties"]["model"]["enum"] = list(models)
    return schemas
