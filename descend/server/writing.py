"""A model that writes, behind a queue: texts of several requests at once, each told piece by piece as it comes.

job → batching → tokens → spelling → stop strings → pieces          the last three in the clients' thread
"""

from __future__ import annotations

import asyncio
import secrets
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from descend.errors import Mistake
from descend.inference.writer import Writer
from descend.sampling.filters import TokenSampler
from descend.sampling.stop import Held
from descend.server.batching import Batcher, Drawn, Full, Job, Likely
from descend.server.refusal import Refusal
from descend.text.chat_template import ChatTemplate
from descend.text.spelling import Spelling

LONGEST = 8192  # tokens of a text where the user sets no other limit: the memory of a row
LONGEST_WORD = 64  # characters that a token stands for at most, where it is not its own spelling ("unknown")
NO_TEMPLATE = (
    "{} has no chat template, so it takes no messages: use /v1/completions, or put a chat_template.jinja beside its "
    "tokenizer.json"
)


@dataclass(frozen=True)
class Order:
    """What a request asks for; several prompts and several choices of each."""

    prompts: Sequence[Sequence[int]]
    tokens: int | None
    sampler: TokenSampler
    seed: int | None
    stops: tuple[str, ...] = ()
    choices: int = 1
    best: int | None = None
    end: tuple[int, ...] | None = None
    """Tokens that end the text; None: the end of a document."""


@dataclass
class Piece:
    """Some more of a choice; `reason` is there when it was the last."""

    choice: int
    text: str
    tokens: list[tuple[int, Likely]] = field(default_factory=list)
    """With their log-probabilities, where these were asked for."""
    reason: str = ""


@dataclass(eq=False)
class Letter(Job):
    """A job of a request: where its tokens go, and what has been made of them."""

    choice: int = 0
    inbox: Any = None
    spelling: Any = None
    held: Any = None
    written: int = 0
    done: bool = False


class TextModel:
    """One run that continues texts."""

    def __init__(self, name: str, writer: Writer, rows: int, queue: int, context: int = 0):
        self.name, self.writer = name, writer
        decoder = writer.trained.model.decoder()
        self.context = min(decoder.context, context or LONGEST)
        try:
            self.batcher = Batcher(decoder, rows, self.context, queue, self.deliver)
        except (MemoryError, RuntimeError) as error:  # torch's allocator says it as a RuntimeError
            if "memory" not in str(error).lower() and not isinstance(error, MemoryError):
                raise
            room = f"--rows {rows}: there is no memory for so many texts of {self.context:,} tokens"
            raise Mistake(f"{room}; give fewer, or a smaller --context") from None
        self.loop: asyncio.AbstractEventLoop | None = None
        self.one_at_a_time = threading.Lock()  # a tokenizer is told by its state what to do with special tokens
        tokenizer = writer.tokenizer
        self.end: tuple[int, ...] = () if tokenizer.end is None else (tokenizer.end,)
        self.longest_word = max(LONGEST_WORD, *map(len, tokenizer.inner.get_vocab()))
        self.template: ChatTemplate | None = None
        self.end_of_turn, self.no_chat = tuple(self.end), NO_TEMPLATE.format(name)
        if tokenizer.chat_template:
            self.read_template()

    def read_template(self) -> None:
        """How messages are written, and what ends a turn; a template that cannot be used leaves the completions."""
        try:
            template = ChatTemplate.of(self.writer.tokenizer)
            self.end_of_turn, self.template = template.stops(self.writer.tokenizer), template
        except Mistake as mistake:
            self.no_chat = f"{self.name} takes no messages: {mistake}"

    def start(self) -> None:
        """Inside the loop that the clients are talked to in."""
        self.loop = asyncio.get_running_loop()
        self.batcher.start()

    def deliver(self, found: list[tuple[Job, Drawn]]) -> None:
        assert self.loop is not None
        with suppress(RuntimeError):  # the loop ended before this thread did: nobody waits
            self.loop.call_soon_threadsafe(self.spread, found)

    def spread(self, found: list[tuple[Job, Drawn]]) -> None:
        for job, drawn in found:
            assert isinstance(job, Letter)
            job.inbox.put_nowait((job, drawn))

    # Prompts

    async def read_prompt(self, prompt: str | Sequence[int]) -> list[int]:
        """Tokens of a text, or the tokens themselves; an empty one begins as a document does, with an end."""
        if not isinstance(prompt, str):
            vocab = self.writer.trained.model.config.vocab
            if wrong := next((token for token in prompt if token >= vocab), None):
                raise Refusal(400, f"token {wrong}: {self.name} has the tokens 0 to {vocab - 1}", None, "prompt")
            ids = list(prompt)
        else:
            self.check_length(len(prompt))
            ids = await asyncio.to_thread(self.encode, prompt)
        if not (ids := ids or list(self.end)):
            raise Refusal(400, "the prompt is empty: give at least one token", None, "prompt")
        return ids

    def encode(self, text: str) -> list[int]:
        with self.one_at_a_time:
            return self.writer.tokenizer.encode(text)

    async def read_messages(self, messages: Sequence[dict[str, str]]) -> list[int]:
        """The conversation up to where the assistant answers."""
        template = self.template
        if template is None:
            raise Refusal(400, self.no_chat, "no_chat_template", "messages")
        self.check_length(sum(len(message["content"]) for message in messages))

        def render() -> list[int]:
            with self.one_at_a_time:
                return template.prompt(messages, self.writer.tokenizer)

        return await asyncio.to_thread(render)

    # Texts

    def write(self, order: Order) -> Answer:
        """Begin all choices of an order, or refuse it."""
        for prompt in order.prompts:
            self.check_context(len(prompt), order.tokens or 1)
        places = self.batcher.count + self.batcher.queue
        if (asked := len(order.prompts) * order.choices) > places:
            raise Refusal(400, f"{asked} texts at once, but there is room for {places}: ask for fewer", "too_many")
        seed = secrets.randbelow(2**31) if order.seed is None else order.seed
        end = self.end if order.end is None else order.end
        inbox: asyncio.Queue[tuple[Letter, Drawn]] = asyncio.Queue()
        letters = [
            Letter(
                prompt, order.tokens or self.context - len(prompt) + 1, order.sampler, seed + choice, end,
                order.best, choice=number * order.choices + choice, inbox=inbox,
                spelling=Spelling(self.writer.tokenizer), held=Held(order.stops),
            )
            for number, prompt in enumerate(order.prompts)
            for choice in range(order.choices)
        ]  # fmt: skip
        try:
            self.batcher.submit(letters)
        except Full:
            limit = self.batcher.queue
            raise Refusal(429, f"the queue is full ({limit} requests wait): try again later", "queue_full") from None
        return Answer(self, letters, inbox, sum(map(len, order.prompts)))

    def check_length(self, letters: int) -> None:
        """Refuse at once what no tokens of a context can spell, before it keeps the tokenizer busy."""
        if letters > self.context * self.longest_word:
            raise Refusal(
                400,
                f"the prompt has {letters:,} characters, more than the context of {self.context} tokens can hold: "
                f"shorten it",
                "context_length_exceeded",
            )

    def check_context(self, prompt: int, tokens: int) -> None:
        if prompt + tokens - 1 > self.context:
            raise Refusal(
                400,
                f"the prompt has {prompt} tokens; with {tokens} new ones it passes the context of {self.context} "
                f"tokens: shorten it, or ask for fewer",
                "context_length_exceeded",
            )


class Answer:
    """The choices of a request while they are written."""

    def __init__(self, model: TextModel, letters: list[Letter], inbox: Any, prompt_tokens: int):
        self.model, self.letters, self.inbox, self.prompt_tokens = model, letters, inbox, prompt_tokens

    @property
    def written(self) -> int:
        """Tokens of all choices so far."""
        return sum(letter.written for letter in self.letters)

    async def pieces(self) -> AsyncIterator[Piece]:
        """As they come, the choices in any order."""
        while not all(letter.done for letter in self.letters):
            letter, drawn = await self.inbox.get()
            if letter.done:
                continue  # drawn before it was known that a stop string is there
            if drawn.fault:
                raise Refusal(500, drawn.fault, "model_fault")
            yield self.add(letter, drawn)

    def add(self, letter: Letter, drawn: Drawn) -> Piece:
        """What a token adds to its choice."""
        text, held = "", letter.held
        if drawn.last != "stop":
            letter.written += 1
            text = held.add(letter.spelling.add(drawn.token))
        reason = "stop" if held.met else drawn.last
        if held.met and not drawn.last:
            self.model.batcher.cancel(letter)
        if reason:
            letter.done = True
            text += held.text
        likely = [(drawn.token, drawn.likely)] if drawn.likely and drawn.last != "stop" else []
        return Piece(letter.choice, text, likely, reason)

    def leave(self) -> None:
        """Give up what is not done: nobody waits for it."""
        for letter in self.letters:
            if not letter.done:
                self.model.batcher.cancel(letter)
