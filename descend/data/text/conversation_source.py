"""Where conversations come from: the user's .jsonl files, or generated tasks whose answers are known exactly.

    --data.path chats.jsonl              `descend.data.text.conversations` says which records it may hold
    --data.general.share 0.2             a fifth of the examples is general text: replay against forgetting (VOM 13.6.4;
                                         the share is not printed)
    --data.general.path corpus.txt       the general text, whose loss is told beside that of the conversations

Records of one file are split so that equal prompts stay together. Of the generated ones every fourth conversation has
two questions, and the parts share no content.

Systems: instruction-dataset
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from torch import Tensor

from descend.data.reading import show
from descend.data.streams.splits import split_by_group
from descend.data.text.conversations import Dialogue, PlainPair, Record, read_records
from descend.data.text.plain import Text
from descend.data.toys.instructions import QUICK, SKILLS, Instruction, split_instructions
from descend.errors import Mistake, nearest
from descend.ranges import Count, Fraction, Length
from descend.text.tokenizer import Tokenizer

EVERY = 4  # one generated conversation in so many has two questions
GENERATED = "generated"
VALID = 0.1  # of the general text


@dataclass(frozen=True)
class GeneralText:
    """Text like that of pre-training: what should not be forgotten."""

    path: str = ""
    """A text, or a folder of texts; empty: the Python documentation."""
    share: Fraction = 0.0
    """Of the examples of a step: windows of this text between the conversations."""

    def read(self, tokenizer: Tokenizer, length: int) -> tuple[Tensor, Tensor]:
        """Tokens for training and for validation: the text's beginning, and the last tenth."""
        text = Text(path=self.path, valid=VALID)
        return text.split(text.read(), tokenizer, length)

    def read_training(self) -> str:
        """The text's beginning."""
        text = Text(path=self.path).read()
        return text[: round(len(text) * (1 - VALID))]


class ConversationParts(NamedTuple):
    """Records for training, for selecting and for one last look (often none)."""

    train: list[Record]
    valid: list[Record]
    test: list[Record]


@dataclass(frozen=True)
class Conversations:
    """Where the conversations come from and how they are cut into tokens."""

    path: str = ""
    """A .jsonl file, or a folder with train.jsonl and perhaps valid.jsonl and test.jsonl; empty: generated tasks."""
    tasks: tuple[str, ...] = QUICK
    """Which tasks are generated: first, second, third, last, capital, twice, has, count, parity, larger, .."""
    count: Count = 12000
    """Instructions that are generated for training."""
    held_out: Count = 600
    """The same for validation, and for the test."""
    tokenizer: str = "characters"
    """characters, bpe, plain-bpe or unigram, learned from the conversations; a model to start from brings its own."""
    vocab: Length = 1024
    """Maximum vocabulary of what is learned."""
    longest: Length = 1024
    """Maximum tokens of a conversation, where the model's context is longer."""
    valid: Fraction = 0.05
    """Share of the records used for validation, where the data has no validation part."""
    general: GeneralText = field(default_factory=GeneralText)

    def read(self) -> ConversationParts:
        """The records, or a mistake that names file and line."""
        if not self.path:
            return self.generate()
        parts = read_records(self.path)
        if parts["valid"]:
            return ConversationParts(**parts)
        records = parts["train"]
        kept, valid = split_by_group([ask_of(record) for record in records], (1 - self.valid,))
        if not (len(kept) and len(valid)):
            raise Mistake(f"{show(self.path)}: {len(records)} records are too few to train and to validate with")
        some = lambda rows: [records[i] for i in rows.tolist()]
        return ConversationParts(some(kept), some(valid), parts["test"])

    def generate(self) -> ConversationParts:
        """The tasks in turn."""
        wrong = [name for name in self.tasks if name not in SKILLS]
        if wrong or not self.tasks:
            name = (wrong or [""])[0]
            raise Mistake(f"--data.tasks {name!r}: choose {', '.join(SKILLS)}.{nearest(name, SKILLS)}")
        made = split_instructions(self.tasks, self.count, self.held_out)
        return ConversationParts(*(list(converse(part)) for part in made))

    def learn_tokenizer(self, records: Sequence[Record], more: str = "") -> Tokenizer:
        """From the training records, and from the general text where there is any."""
        texts = [text for record in records for text in record.texts()]
        if self.tokenizer in ("words", "wordpiece"):
            raise Mistake(f"--data.tokenizer {self.tokenizer} forgets white space; choose characters, bpe or unigram")
        return Tokenizer.learn("\n".join([*texts, more]), self.tokenizer, self.vocab)

    def describe(self, parts: ConversationParts) -> dict[str, Any]:
        """What a run tells of them."""
        source = show(self.path) if self.path else f"generated: {', '.join(self.tasks)}"
        return {"data": source, "training records": len(parts.train), "validation records": len(parts.valid)}


def converse(asked: Sequence[Instruction]) -> Iterator[Record]:
    """Conversations of one question, every fourth of two."""
    place = number = 0
    while place < len(asked):
        take = 2 if number % EVERY == EVERY - 1 else 1
        now = asked[place : place + take]
        place, number = place + take, number + 1
        messages = [
            {"role": role, "content": content}
            for one in now
            for role, content in (("user", one.instruction), ("assistant", one.answer))
        ]
        yield Dialogue(f"{GENERATED} {number}", tuple(messages), 0, " ".join(one.task for one in now))


def ask_of(record: Record) -> str:
    """What records have in common that must not be told apart: the first thing that a user says."""
    if isinstance(record, Dialogue):
        return next(m["content"] for m in record.messages if m["role"] == "user")
    return record.prompt if isinstance(record, PlainPair) else next(record.texts())
