"""OpenAI's routes: completions, chats and embeddings, whole or as server-sent events."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from descend.server.forms import (
    ChatChoice,
    ChatCompletion,
    ChatForm,
    Completion,
    CompletionChoice,
    CompletionForm,
    Said,
    Usage,
)
from descend.server.gauges import Gauges
from descend.server.refusal import Refusal
from descend.server.writing import Answer, Order, Piece, TextModel
from descend.text.tokenizer import Tokenizer


@dataclass
class Written:
    """A choice, as far as it has come."""

    text: str = ""
    tokens: list[Any] = field(default_factory=list)
    reason: Any = None

    def add(self, piece: Piece) -> None:
        self.text += piece.text
        self.tokens += piece.tokens
        self.reason = piece.reason or None


@dataclass
class Reply:
    """A request that is being answered, and how it is told."""

    model: TextModel
    answer: Answer
    form: CompletionForm | ChatForm
    chat: bool
    gauges: Gauges

    def __post_init__(self) -> None:
        self.id, self.created = f"{'chatcmpl' if self.chat else 'cmpl'}-{uuid4().hex}", int(time.time())
        self.told = False

    def leave(self) -> None:
        """However it ended: nobody waits any more, and the tokens are counted."""
        self.answer.leave()
        if not self.told:
            self.gauges.read(self.model.name, self.answer.prompt_tokens, self.answer.written)
        self.told = True

    @property
    def usage(self) -> Usage:
        read, written = self.answer.prompt_tokens, self.answer.written
        return Usage(prompt_tokens=read, completion_tokens=written, total_tokens=read + written)

    @property
    def likely(self) -> Callable[[list[Any]], dict[str, Any]]:
        tokenizer = self.model.writer.tokenizer
        return lambda tokens: (list_chat_likely if self.chat else list_likely)(tokenizer, tokens)

    async def whole(self) -> Completion | ChatCompletion:
        """All choices together."""
        found = [Written() for _ in self.answer.letters]
        try:
            async for piece in self.answer.pieces():
                found[piece.choice].add(piece)
        finally:
            self.leave()
        about: dict[str, Any] = {"id": self.id, "created": self.created, "model": self.model.name, "usage": self.usage}
        asked = [self.likely(one.tokens) if self.answer.letters[0].best is not None else None for one in found]
        told = list(enumerate(zip(found, self.answer.letters, asked, strict=True)))
        if not self.chat:
            return Completion(**about, choices=[
                CompletionChoice(index=i, text=w.text, seed=job.seed, logprobs=p, finish_reason=w.reason)
                for i, (w, job, p) in told
            ])  # fmt: skip
        return ChatCompletion(**about, choices=[
            ChatChoice(index=i, message=Said(content=w.text), seed=job.seed, logprobs=p, finish_reason=w.reason)
            for i, (w, job, p) in told
        ])  # fmt: skip

    async def events(self) -> AsyncIterator[dict[str, Any]]:
        """Piece by piece; a piece without text waits for the next one."""
        if self.chat:
            for i in range(len(self.answer.letters)):
                yield self.event([{"index": i, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}])
        waiting = [Piece(i, "") for i in range(len(self.answer.letters))]
        async for piece in self.answer.pieces():
            held = waiting[piece.choice]
            held.text, held.tokens, held.reason = held.text + piece.text, held.tokens + piece.tokens, piece.reason
            if held.text or held.reason:
                yield self.event([self.choice(held)])
                waiting[piece.choice] = Piece(piece.choice, "")
        if self.form.tells_usage:
            yield {**self.event([]), "usage": self.usage.model_dump()}

    def choice(self, piece: Piece) -> dict[str, Any]:
        told = {"content": piece.text} if piece.text else {}
        text: dict[str, Any] = {"delta": told} if self.chat else {"text": piece.text}
        letter = self.answer.letters[piece.choice]
        likely = self.likely(piece.tokens) if letter.best is not None else None
        seed = {"seed": letter.seed} if piece.reason else {}
        return {"index": piece.choice, **text, "logprobs": likely, "finish_reason": piece.reason or None, **seed}

    def event(self, choices: list[dict[str, Any]]) -> dict[str, Any]:
        kind = "chat.completion.chunk" if self.chat else "text_completion"
        about = {"id": self.id, "object": kind, "created": self.created, "model": self.model.name, "choices": choices}
        return {**about, "usage": None} if self.form.tells_usage else about


async def begin_completion(model: TextModel, form: CompletionForm, gauges: Gauges) -> Reply:
    prompts = [await model.read_prompt(prompt) for prompt in form.prompts]
    order = Order(prompts, form.max_tokens, form.sampler, form.seed, form.stops, form.n, form.logprobs)
    return Reply(model, model.write(order), form, False, gauges)


async def begin_chat(model: TextModel, form: ChatForm, gauges: Gauges) -> Reply:
    if form.top_logprobs is not None and not form.logprobs:
        raise Refusal(400, "top_logprobs needs logprobs: true", "invalid_value", "top_logprobs")
    prompt = await model.read_messages([message.plain for message in form.messages])
    tokens, best = form.max_completion_tokens or form.max_tokens, (form.top_logprobs or 0) if form.logprobs else None
    order = Order([prompt], tokens, form.sampler, form.seed, form.stops, form.n, best, model.end_of_turn)
    return Reply(model, model.write(order), form, True, gauges)


# Log-probabilities


def list_likely(tokenizer: Tokenizer, tokens: list[Any]) -> dict[str, Any]:
    """As completions tell them."""
    words = [tokenizer.decode([token]) for token, _ in tokens]
    places = [sum(map(len, words[:i])) for i in range(len(words))]
    best = [{tokenizer.decode([other]): p for other, p in likely.best} for _, likely in tokens]
    drawn = [likely.drawn for _, likely in tokens]
    return {"tokens": words, "token_logprobs": drawn, "top_logprobs": best, "text_offset": places}


def list_chat_likely(tokenizer: Tokenizer, tokens: list[Any]) -> dict[str, Any]:
    """As chats tell them."""

    def show(token: int, p: float) -> dict[str, Any]:
        word = tokenizer.decode([token])
        return {"token": word, "logprob": p, "bytes": list(word.encode())}

    content = [
        {**show(token, likely.drawn), "top_logprobs": [show(other, p) for other, p in likely.best]}
        for token, likely in tokens
    ]
    return {"content": content, "refusal": None}
