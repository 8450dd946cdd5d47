"""What clients of OpenAI's interface send and get: the fields that are understood here, each with its range.

A field that is not there is refused by its name, and so is one whose value asks for what the server does not do: nobody
gets another text than he asked for. Beyond OpenAI's: top_k, min_p, repetition_penalty as `descend generate` has them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from descend.errors import nearest
from descend.sampling.filters import TokenSampler
from descend.server.refusal import Refusal

MOST_STOPS = 16
MOST_CHOICES = 16
MOST_LIKELY = 20
CHOICE_TOKENS = 16  # of a completion whose request does not say

Zero = Annotated[float, Field(ge=0, le=0)]
Text = Annotated[str, Field(min_length=1, max_length=1000)]
Tokens = list[Annotated[int, Field(ge=0)]]


class Form(BaseModel):
    """A request."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    model: str
    """As /v1/models lists it."""
    user: str | None = None


class StreamOptions(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    include_usage: bool = False
    include_obfuscation: Literal[False] = False


class WritingForm(Form):
    """What completions and chats have in common."""

    temperature: Annotated[float, Field(ge=0, le=2)] = 1.0
    top_p: Annotated[float, Field(ge=0, le=1)] = 1.0
    top_k: Annotated[int, Field(ge=0)] = 0
    min_p: Annotated[float, Field(ge=0, le=1)] = 0.0
    repetition_penalty: Annotated[float, Field(ge=0.01, le=100)] = 1.0
    seed: Annotated[int, Field(ge=0, lt=2**63)] | None = None
    """Without one the server draws one, and tells it in the answer. Choice i has the seed + i."""
    stop: Text | Annotated[list[Text], Field(max_length=MOST_STOPS)] | None = None
    n: Annotated[int, Field(ge=1, le=MOST_CHOICES)] = 1
    stream: bool = False
    stream_options: StreamOptions | None = None
    presence_penalty: Zero = 0.0
    frequency_penalty: Zero = 0.0
    logit_bias: Annotated[dict[str, float], Field(max_length=0)] | None = None
    metadata: dict[str, str] | None = None
    store: bool | None = None
    service_tier: str | None = None

    @property
    def sampler(self) -> TokenSampler:
        return TokenSampler(self.temperature, self.top_k, self.top_p, self.min_p, self.repetition_penalty)

    @property
    def stops(self) -> tuple[str, ...]:
        return (self.stop,) if isinstance(self.stop, str) else tuple(self.stop or ())

    @property
    def tells_usage(self) -> bool:
        return self.stream_options is not None and self.stream_options.include_usage


class CompletionForm(WritingForm):
    prompt: str | Annotated[list[str], Field(min_length=1)] | Tokens | Annotated[list[Tokens], Field(min_length=1)]
    max_tokens: Annotated[int, Field(ge=1)] = CHOICE_TOKENS
    logprobs: Annotated[int, Field(ge=0, le=MOST_LIKELY)] | None = None
    echo: Literal[False] = False
    best_of: Literal[1] | None = None
    suffix: Literal[None] = None

    @property
    def prompts(self) -> Sequence[str | Sequence[int]]:
        """One or several, as text or as tokens."""
        if isinstance(self.prompt, str):
            return [self.prompt]
        if all(isinstance(part, int) for part in self.prompt):
            return [self.prompt]  # type: ignore[list-item]
        return self.prompt  # type: ignore[return-value]


class Part(BaseModel):
    """A piece of a message."""

    model_config = ConfigDict(extra="forbid", strict=True)

    type: Literal["text"]
    text: str


class Message(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[Part]
    name: str | None = None

    @property
    def plain(self) -> dict[str, str]:
        content = self.content if isinstance(self.content, str) else "".join(part.text for part in self.content)
        return {"role": self.role, "content": content}


class TextFormat(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    type: Literal["text"] = "text"


class ChatForm(WritingForm):
    messages: Annotated[list[Message], Field(min_length=1)]
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    max_completion_tokens: Annotated[int, Field(ge=1)] | None = None
    """Without one of the two: as many as the context has room for."""
    logprobs: bool = False
    top_logprobs: Annotated[int, Field(ge=0, le=MOST_LIKELY)] | None = None
    response_format: TextFormat | None = None


class EmbeddingForm(Form):
    input: str | Annotated[list[str], Field(min_length=1, max_length=2048)]
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: Annotated[int, Field(ge=1)] | None = None


# What comes back


class Usage(BaseModel):
    prompt_tokens: int
    completion_tokens: int = 0
    total_tokens: int


class CompletionChoice(BaseModel):
    index: int
    text: str
    seed: int
    logprobs: dict[str, Any] | None = None
    finish_reason: Literal["stop", "length"] | None


class Completion(BaseModel):
    id: str
    object: Literal["text_completion"] = "text_completion"
    created: int
    model: str
    choices: list[CompletionChoice]
    usage: Usage | None = None


class Said(BaseModel):
    role: Literal["assistant"] = "assistant"
    content: str
    refusal: None = None


class ChatChoice(BaseModel):
    index: int
    message: Said
    seed: int
    logprobs: dict[str, Any] | None = None
    finish_reason: Literal["stop", "length"]


class ChatCompletion(BaseModel):
    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str
    choices: list[ChatChoice]
    usage: Usage


class Embedding(BaseModel):
    object: Literal["embedding"] = "embedding"
    index: int
    embedding: list[float] | str


class Embeddings(BaseModel):
    object: Literal["list"] = "list"
    data: list[Embedding]
    model: str
    usage: Usage


class ModelCard(BaseModel):
    id: str
    object: Literal["model"] = "model"
    created: int
    owned_by: Literal["descend"] = "descend"
    kind: str
    offers: list[str]
    """completions, chat, embeddings, predict"""


class ModelList(BaseModel):
    object: Literal["list"] = "list"
    data: list[ModelCard]


def explain_form(errors: Sequence[Mapping[str, Any]], known: Sequence[str] = ()) -> Refusal:
    """The first thing that is wrong with a request, as pydantic found it; a misspelt name before what it leaves out.
    The value is not repeated."""
    error = min(errors, key=lambda one: one["type"] != "extra_forbidden")
    where = [str(part) for part in error["loc"] if part != "body"]
    if error["type"] == "json_invalid":
        return Refusal(400, "the body is not JSON; send one object", "invalid_json")
    if error["type"] == "extra_forbidden":
        hint = nearest(where[-1], known)
        return Refusal(400, f"{where[-1]!r} is not known here.{hint} Leave it out", "unknown_parameter", where[-1])
    named = where[0] if where else "the body"
    path = ".".join(part for part in where if part.isdigit() or part.isidentifier()) or "the body"
    said = error["msg"][:1].lower() + error["msg"][1:]
    return Refusal(400, f"{path}: {said}", "invalid_value", named if where else None)
