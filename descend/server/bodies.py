"""Reading the body of a request: JSON, checked by the form of its route; and how the forms stand in OpenAPI."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic.json_schema import models_json_schema
from starlette.requests import Request

from descend.server.forms import Form, explain_form
from descend.server.json_body import read_body

F = TypeVar("F", bound=Form)
REFERENCE = "#/components/schemas/{model}"


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
