"""The application: the routes of all runs that are served, behind the gate.

GET  /health   /metrics   /docs   /openapi.json   /v1/models   /v1/models/{name}   /v1/models/{name}/schema
POST /v1/completions   /v1/chat/completions   /v1/embeddings   /v1/predict
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from fastapi import FastAPI, Request
from fastapi.openapi.utils import get_openapi
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from descend.errors import Mistake, nearest
from descend.server import families, forms, openai_routes
from descend.server.bodies import check_form, describe_parts, read_form, takes
from descend.server.gate import Gate, Rules
from descend.server.gauges import CONTENT, Gauges
from descend.server.json_body import read_body
from descend.server.page import make_docs
from descend.server.refusal import ErrorBody, Refusal
from descend.server.served import Limits, Served, as_base64
from descend.server.streams import GONE, ClientGone, EventStream, while_waiting

T = TypeVar("T")
REFUSED: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorBody, "description": text}
    for status, text in (
        (400, "wrong, and why"), (401, "no key"), (403, "another host"), (404, "no such model"), (413, "too large"),
        (415, "not JSON"), (429, "the queue is full"), (500, "our fault"), (503, "the server is ending"),
    )
}  # fmt: skip
PARTS: tuple[type[BaseModel], ...] = (
    forms.CompletionForm, forms.ChatForm, forms.EmbeddingForm, *families.FORMS, forms.Completion, forms.ChatCompletion,
    forms.Embeddings, families.Prediction, *families.ANSWERS,
)  # fmt: skip


class Service:
    """What the routes share: the runs, the counters, and one thread that answers whatever is not written token by
    token."""

    def __init__(self, served: Mapping[str, Served], limits: Limits, host: str, key: str):
        self.served, self.limits, self.gauges = served, limits, Gauges()
        self.thread = ThreadPoolExecutor(1, "answering")
        self.waiting = 0
        self.api = make_api(self)
        routes = frozenset(str(getattr(route, "path", "")) for route in self.api.routes)
        self.gate = Gate(self.api, Rules(host, key, limits.body), self.gauges, routes)

    @asynccontextmanager
    async def live(self, _: FastAPI) -> AsyncIterator[None]:
        """From start to end."""
        for one in self.served.values():
            if one.text is not None:
                one.text.start()
        yield
        await asyncio.to_thread(self.close)

    def close(self) -> None:
        """End all threads, each after its step."""
        for one in self.served.values():
            if one.text is not None:
                one.text.batcher.close()
        self.thread.shutdown(wait=False, cancel_futures=True)

    def find(self, name: str) -> Served:
        if name not in self.served:
            known = ", ".join(self.served)
            hint = nearest(name, self.served)
            raise Refusal(404, f"there is no model {name!r}.{hint} Served: {known}", "model_not_found", "model")
        return self.served[name]

    def find_offer(self, name: str, offer: str) -> Served:
        """A run that answers on this route."""
        found = self.find(name)
        if offer not in found.offers and not (offer == "chat" and found.text):  # a text model says what it lacks
            routes = ", ".join(f"/v1/{one.replace('chat', 'chat/completions')}" for one in found.offers)
            raise Refusal(
                400, f"{name} holds a {found.trained.kind}, which answers at {routes}", "wrong_route", "model"
            )
        return found

    async def answer(self, work: Callable[[], T]) -> T:
        """Run something in the thread that answers, or refuse it where too many wait already."""
        if self.waiting >= self.limits.queue + 1:
            raise Refusal(429, f"the queue is full ({self.limits.queue} requests wait): try again later", "queue_full")
        self.waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self.thread, work)
        finally:
            self.waiting -= 1

    def show_metrics(self) -> str:
        texts = {name: one.text.batcher for name, one in self.served.items() if one.text is not None}
        return self.gauges.show((
            ("queue", "Requests that wait for a row.", {name: len(b.waiting) for name, b in texts.items()}),
            ("rows", "Texts that are being written.", {name: len(b.texts) for name, b in texts.items()}),
            ("rows_limit", "Texts that can be written at once.", {name: b.count for name, b in texts.items()}),
            ("steps", "Steps of the decoder since the start.", {name: b.steps for name, b in texts.items()}),
            ("answering", "Requests that wait for another answer.", {"": self.waiting}),
        ))  # fmt: skip

    def card(self, one: Served) -> forms.ModelCard:
        return forms.ModelCard(id=one.name, created=one.created, kind=one.trained.kind, offers=one.offers)


def make_api(service: Service) -> FastAPI:
    """All routes."""
    api = FastAPI(
        title="descend serve", version="1", docs_url=None, redoc_url=None, lifespan=service.live, responses=REFUSED
    )
    add_handlers(api)
    add_watching(api, service)
    add_models(api, service)
    add_writing(api, service)
    add_answers(api, service)
    api.openapi = lambda: describe_api(api, service)  # type: ignore[method-assign]
    return api


def add_handlers(api: FastAPI) -> None:
    """Every refusal has OpenAI's body."""

    async def refuse(_: Request, error: Any) -> JSONResponse:
        found: JSONResponse = error.respond()
        return found

    async def explain(_: Request, error: Any) -> JSONResponse:
        return Refusal(400, str(error)).respond()

    async def translate(_: Request, error: Any) -> JSONResponse:
        found = Refusal(error.status_code, f"{str(error.detail).lower()}; GET /docs lists the routes").respond()
        found.headers.update(error.headers or {})
        return found

    async def leave(_: Request, __: Any) -> Response:
        return Response(status_code=GONE)

    async def fail(_: Request, error: Any) -> JSONResponse:
        return Refusal(500, f"{type(error).__name__}: this is our fault; the server's log says more").respond()

    pairs: list[tuple[Any, Any]] = [
        (Refusal, refuse), (Mistake, explain), (HTTPException, translate), (ClientGone, leave), (Exception, fail),
    ]  # fmt: skip
    for kind, handler in pairs:
        api.add_exception_handler(kind, handler)


def add_watching(api: FastAPI, service: Service) -> None:
    """For those who run the server."""

    @api.get("/health")
    async def health() -> JSONResponse:
        """Whether requests are taken."""
        ending = service.gate.ending
        return JSONResponse({"status": "ending" if ending else "ok"}, 503 if ending else 200)

    @api.get("/metrics", response_class=PlainTextResponse)
    async def metrics() -> PlainTextResponse:
        """Counters for Prometheus."""
        return PlainTextResponse(service.show_metrics(), media_type=CONTENT)

    @api.get("/docs", response_class=HTMLResponse)
    async def docs(request: Request) -> HTMLResponse:
        """This page."""
        cards = [service.card(one).model_dump() for one in service.served.values()]
        return HTMLResponse(make_docs(api.openapi(), cards, str(request.base_url).rstrip("/")))


def add_models(api: FastAPI, service: Service) -> None:
    """What is served."""

    @api.get("/v1/models")
    async def list_models() -> forms.ModelList:
        """All models."""
        return forms.ModelList(data=[service.card(one) for one in service.served.values()])

    @api.get("/v1/models/{name}")
    async def show_model(name: str) -> forms.ModelCard:
        """One of them."""
        return service.card(service.find(name))

    @api.get("/v1/models/{name}/schema")
    async def show_schema(name: str) -> dict[str, Any]:
        """JSON schemas of what /v1/predict takes and answers for this model."""
        family = service.find_offer(name, "predict").family
        assert family is not None
        return family.describe(name)


def add_writing(api: FastAPI, service: Service) -> None:
    """What is written token by token."""

    async def reply(request: Request, made: openai_routes.Reply) -> Any:
        if made.form.stream:
            return EventStream(made.events(), made.leave)
        return await while_waiting(request, made.whole())

    @api.post("/v1/completions", response_model=forms.Completion, openapi_extra=takes(forms.CompletionForm))
    async def complete(request: Request) -> Any:
        """Continue a text; with "stream" as server-sent events."""
        form = await read_form(forms.CompletionForm, request)
        model = service.find_offer(form.model, "completions").text
        assert model is not None
        return await reply(request, await openai_routes.begin_completion(model, form, service.gauges))

    @api.post("/v1/chat/completions", response_model=forms.ChatCompletion, openapi_extra=takes(forms.ChatForm))
    async def chat(request: Request) -> Any:
        """Answer a conversation; with "stream" as server-sent events."""
        form = await read_form(forms.ChatForm, request)
        model = service.find_offer(form.model, "chat").text
        assert model is not None
        return await reply(request, await openai_routes.begin_chat(model, form, service.gauges))


def add_answers(api: FastAPI, service: Service) -> None:
    """What is answered at once."""

    @api.post("/v1/embeddings", openapi_extra=takes(forms.EmbeddingForm))
    async def embed(request: Request) -> forms.Embeddings:
        """A vector of each text."""
        form = await read_form(forms.EmbeddingForm, request)
        encoder = service.find_offer(form.model, "embeddings").encoder
        assert encoder is not None
        texts = [form.input] if isinstance(form.input, str) else form.input
        if "" in texts:
            raise Refusal(400, "input: a text is empty: leave it out", "invalid_value", "input")
        vectors, count = await while_waiting(request, service.answer(lambda: encoder.encode(texts)))
        if form.dimensions not in (None, len(vectors[0])):
            raise Refusal(400, f"dimensions: {form.model} gives {len(vectors[0])}", "invalid_value", "dimensions")
        service.gauges.read(form.model, count, 0)
        shown = [as_base64(vector) if form.encoding_format == "base64" else vector for vector in vectors]
        data = [forms.Embedding(index=i, embedding=vector) for i, vector in enumerate(shown)]
        return forms.Embeddings(data=data, model=form.model, usage=forms.Usage(prompt_tokens=count, total_tokens=count))

    @api.post("/v1/predict", response_model=families.Prediction, openapi_extra=takes(*families.FORMS))
    async def predict(request: Request) -> Any:
        """Ask any other model; GET /v1/models/{name}/schema says what it takes."""
        value = await read_body(request)
        name = value.get("model")
        if not isinstance(name, str):
            raise Refusal(400, "model: give the name of a model, as /v1/models lists it", "invalid_value", "model")
        family = service.find_offer(name, "predict").family
        assert family is not None
        form = check_form(family.form, value)
        answers = await while_waiting(request, service.answer(lambda: family.ask(form)))
        checked = [family.answer.model_validate(answer).model_dump(exclude_none=True) for answer in answers]
        return JSONResponse({"model": name, "object": "prediction", "answers": checked})


def describe_api(api: FastAPI, service: Service) -> dict[str, Any]:
    """OpenAPI, with the forms that the routes check themselves."""
    if api.openapi_schema is None:
        found = get_openapi(title=api.title, version=api.version, routes=api.routes)
        schemas = found.setdefault("components", {}).setdefault("schemas", {})
        schemas.update(describe_parts(PARTS, list(service.served)))
        for path in ("/v1/completions", "/v1/chat/completions"):
            content = found["paths"][path]["post"]["responses"]["200"]["content"]
            content["text/event-stream"] = {"schema": {"type": "string"}}
        for methods in found["paths"].values():
            for told in methods.values():
                told["responses"].pop("422", None)
        api.openapi_schema = found
    return api.openapi_schema
