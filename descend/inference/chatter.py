"""Conversation: messages in, the assistant's answer out, piece by piece.

    prompt = template(system, user, assistant, .., user)        y_i ~ p(· | prompt, y_<i)   until the turn ends

The model reads what its chat template makes of the messages. When they no longer fit into its context, the oldest
exchanges are left out, never the system's message nor the last question; a question that does not fit alone is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from descend.contracts import AnswersSource
from descend.errors import Mistake
from descend.inference.trained import Trained, load_trained
from descend.inference.writer import Beginning, Writer
from descend.sampling.filters import TokenSampler
from descend.text.chat_template import ChatTemplate

Messages = Sequence[Mapping[str, Any]]


class Prompt(NamedTuple):
    """What the model reads, how much it may write, and how many of the messages were left out."""

    ids: list[int]
    tokens: int
    dropped: int


@dataclass(frozen=True)
class Chatter:
    """A language model with a chat template."""

    writer: Writer
    template: ChatTemplate
    takes = "messages"

    @classmethod
    def open(cls, run: str | Path, checkpoint: str | int = "best") -> Chatter:
        """From a run or a model folder."""
        return cls.read(load_trained(run, checkpoint))

    @classmethod
    def read(cls, trained: Trained) -> Chatter:
        """With the tokenizer and its template beside the weights."""
        writer = Writer.read(trained)
        if isinstance(trained.model, AnswersSource):
            raise Mistake(f"a {trained.kind} answers one source text: descend generate {trained.folder}")
        try:
            return cls(writer, ChatTemplate.of(writer.tokenizer))
        except Mistake as mistake:
            raise Mistake(f"{trained.folder}: {mistake}") from None

    @property
    def context(self) -> int | None:
        """Tokens that the model can read; None: any number."""
        config = self.writer.trained.model.config
        return config.context if "context" in type(config).__dataclass_fields__ else None

    def prepare(self, messages: Messages, tokens: int) -> Prompt:
        """The prompt of as many of the last messages as leave room for an answer: `tokens`, or a quarter of the context
        where that is less."""
        first = 1 if messages and messages[0].get("role") == "system" else 0
        kept = list(messages)
        ids = self.template.prompt(kept, self.writer.tokenizer)
        if self.context is None:
            return Prompt(ids, tokens, 0)
        room = max(min(tokens, self.context // 4), 1)
        while len(ids) + room > self.context and len(kept) > first + 1:
            last = next((k for k in range(first + 1, len(kept)) if kept[k]["role"] == "user"), None)
            if last is None:
                break
            del kept[first:last]
            ids = self.template.prompt(kept, self.writer.tokenizer)
        if len(ids) >= self.context:
            raise Mistake(
                f"the message makes a prompt of {len(ids)} tokens, "
                f"and the model's context has {self.context}: shorten it"
            )
        return Prompt(ids, min(tokens, self.context - len(ids)), len(messages) - len(kept))

    def answer(self, prompt: Prompt, sampler: TokenSampler, seed: int = 0) -> Iterator[str]:
        """The answer as it comes."""
        writer = self.writer
        begun = Beginning(writer.trained.model.decoder(), prompt.ids, self.template.stops(writer.tokenizer))
        yield from writer.write_from(begun, prompt.tokens, sampler, seed)
