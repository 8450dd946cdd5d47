"""Conversations to learn from: what was asked, and what the assistant said.

    {"messages": [{"role": "user", "content": ..}, {"role": "assistant", "content": ..}, ..]}   every answer is learned
    {"prompt": [messages], "completion": [messages]}       the answers of the completion are learned
    {"prompt": "..", "completion": ".."}                   plain text, as it stands; the completion is learned
    {"instruction": "..", "input": "..", "output": ".."}   as a user's message (the input below it) and an answer
    {"text": ".."}                                         a document; all of it is learned, as in pre-training

One record a line. Messages become text by the tokenizer's chat template (`descend.text.chat_template`); prompts and
completions that are strings do not, as in trl. A folder holds train.jsonl and, where there are, valid.jsonl and
test.jsonl; without those names all of its .jsonl files are for training.

    tokens   <|user|> 2 + 2 ? <|assistant|> 4 <|endoftext|>
    said        0     0 0 0 0       0       1      1                the loss counts these only

A record that is longer than the context ends there. One whose answers would all be cut away is refused, and so is every
record that teaches nothing or cannot be a conversation; the mistake names file and line.

Systems: instruction-dataset
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from descend.data.reading import is_folder, list_files, read_objects, show
from descend.errors import Mistake
from descend.text.chat_template import SPEAKERS, ChatTemplate, check_messages
from descend.text.tokenizer import Tokenizer

SPLITS = {"train": ("train",), "valid": ("valid", "val", "validation", "dev"), "test": ("test",)}
FORMS = "messages, prompt and completion, instruction and output, or text"


class Marked(NamedTuple):
    """Tokens, and which of them the assistant said."""

    tokens: list[int]
    said: list[bool]


class Record(Protocol):
    """Something to learn from, whatever its form."""

    @property
    def where(self) -> str: ...

    def encode(self, tokenizer: Tokenizer) -> Marked: ...

    def texts(self) -> Iterator[str]: ...


@dataclass(frozen=True)
class Dialogue:
    """Messages; the assistant's are learned from number `since` on."""

    where: str
    messages: tuple[Mapping[str, Any], ...]
    since: int = 0
    task: str = ""
    """The generated tasks in it, by their names."""

    def encode(self, tokenizer: Tokenizer) -> Marked:
        return Marked(*ChatTemplate.of(tokenizer).encode(self.messages, tokenizer, self.since))

    def texts(self) -> Iterator[str]:
        """What a tokenizer learns from."""
        return (message["content"] for message in self.messages)


@dataclass(frozen=True)
class PlainPair:
    """A text and how it goes on."""

    where: str
    prompt: str
    completion: str

    def encode(self, tokenizer: Tokenizer) -> Marked:
        before, after = tokenizer.encode(self.prompt), ended(tokenizer.encode(self.completion), tokenizer)
        return Marked(before + after, [False] * len(before) + [True] * len(after))

    def texts(self) -> Iterator[str]:
        yield from (self.prompt, self.completion)


@dataclass(frozen=True)
class Document:
    """A text, all of which is learned."""

    where: str
    text: str

    def encode(self, tokenizer: Tokenizer) -> Marked:
        tokens = ended(tokenizer.encode(self.text), tokenizer)
        return Marked(tokens, [False] + [True] * (len(tokens) - 1))  # nothing stands before the first

    def texts(self) -> Iterator[str]:
        yield self.text


def ended(tokens: list[int], tokenizer: Tokenizer) -> list[int]:
    """With the end of a text after them, where the tokenizer has one."""
    return tokens if tokenizer.end is None else [*tokens, tokenizer.end]


# Reading


def read_records(path: str | Path) -> dict[str, list[Record]]:
    """The records of a file or a folder by part: train, valid, test."""
    path = Path(path)
    if not is_folder(path):
        return {"train": read_file(path), "valid": [], "test": []}
    files = list_files(path, (".jsonl",))
    if not files:
        raise Mistake(f"{show(path)}: no conversations in this folder; it needs .jsonl files")
    parts: dict[str, list[Record]] = {}
    for part, stems in SPLITS.items():
        parts[part] = [record for file in files if file.stem in stems for record in read_file(file)]
    if not parts["train"]:
        held_out = {stem for part in ("valid", "test") for stem in SPLITS[part]}
        parts["train"] = [record for file in files if file.stem not in held_out for record in read_file(file)]
    if not parts["train"]:
        raise Mistake(f"{show(path)}: no record to train on; it needs a train.jsonl")
    return parts


def read_file(path: Path) -> list[Record]:
    """The records of one file."""
    found = [read_record(value, f"{show(path)}, line {line}") for line, value in read_objects(path)]
    if not found:
        raise Mistake(f"{show(path)} holds no record; each line is an object with {FORMS}")
    return found


def read_record(value: Mapping[str, Any], where: str) -> Record:
    """A record by its keys."""
    if "messages" in value:
        return read_dialogue(as_messages(value["messages"], where, "messages"), 0, where)
    if "prompt" in value or "completion" in value:
        return read_completion(value, where)
    if "instruction" in value:
        asked, given, answer = (read_string(value, name, where) for name in ("instruction", "input", "output"))
        content = f"{asked}\n\n{given}" if given.strip() else asked
        turns = ({"role": "user", "content": content}, {"role": "assistant", "content": answer})
        return read_dialogue(turns, 0, where)
    if "text" in value:
        text = read_string(value, "text", where)
        if not text.strip():
            raise Mistake(f'{where}: "text" is empty; leave the record out')
        return Document(where, text)
    raise Mistake(f"{where}: a record with {', '.join(map(repr, value)) or 'nothing'}; it needs {FORMS}")


def read_completion(value: Mapping[str, Any], where: str) -> Record:
    """Both strings, or both messages."""
    prompt, completion = value.get("prompt"), value.get("completion")
    if isinstance(prompt, str) and isinstance(completion, str):
        if not completion.strip():
            raise Mistake(f'{where}: "completion" is empty, so there is nothing to learn; write it, or leave it out')
        if not prompt:
            raise Mistake(f'{where}: "prompt" is empty; give {{"text": ..}} where all of a text is learned')
        return PlainPair(where, prompt, completion)
    if isinstance(prompt, list) and isinstance(completion, list):
        before, after = as_messages(prompt, where, "prompt"), as_messages(completion, where, "completion")
        return read_dialogue((*before, *after), len(before), where)
    raise Mistake(f'{where}: "prompt" and "completion" must both be texts, or both lists of messages')


def as_messages(value: object, where: str, name: str) -> tuple[Mapping[str, Any], ...]:
    """A list of objects."""
    if not isinstance(value, list) or not all(isinstance(message, dict) for message in value):
        raise Mistake(f'{where}: "{name}" must be a list of {{"role": .., "content": ..}}')
    return tuple(value)


def read_string(value: Mapping[str, Any], name: str, where: str) -> str:
    """A text; one that is missing is empty."""
    found = value.get(name, "")
    if not isinstance(found, str):
        raise Mistake(f'{where}: "{name}" must be a text, not {type(found).__name__}; write a string')
    return found


def read_dialogue(messages: Sequence[Mapping[str, Any]], since: int, where: str) -> Dialogue:
    """Messages that can be a conversation, or a mistake that says which one cannot."""
    try:
        check_messages(messages)
        check_turns(messages)
    except Mistake as mistake:
        raise Mistake(f"{where}: {mistake}") from None
    return Dialogue(where, tuple(messages), since)


def check_turns(messages: Sequence[Mapping[str, Any]]) -> None:
    """Refuse an order of messages in which somebody is not answered, or answers nobody."""
    before = ""
    for turn, message in enumerate(messages, start=1):
        role = message["role"]
        if role == before and role in ("user", "assistant"):
            raise Mistake(f"messages {turn - 1} and {turn} are both the {role}'s; join them, or add what is between")
        if role == "system" and turn > 1:
            raise Mistake(f"message {turn} is the system's; it comes first")
        if role == "assistant" and before in ("", "system"):
            raise Mistake(f"message {turn} is the assistant's, but nothing was asked; begin with a user's message")
        if role == "assistant" and not message["content"].strip():
            raise Mistake(f"message {turn}: the assistant's answer is empty; write it, or leave the record out")
        before = role
    if before != "assistant":
        raise Mistake(f"the last message is the {before}'s, with no answer; add the assistant's, or leave it out")


# Tokens


def encode_record(record: Record, tokenizer: Tokenizer, context: int) -> Marked:
    """The first `context` tokens of a record; what is learned must be among them."""
    try:
        tokens, said = record.encode(tokenizer)
    except Mistake as mistake:
        raise Mistake(f"{record.where}: {mistake}") from None
    if not any(said[:context]):
        raise Mistake(
            f"{record.where}: the answer begins at token {said.index(True) + 1 if any(said) else 0} of {len(tokens)}, "
            f"beyond the context of {context}, so nothing of it is left; give a larger --model.context, or shorten it"
        )
    return Marked(tokens[:context], said[:context])


__all__ = ["SPEAKERS", "Dialogue", "Document", "Marked", "PlainPair", "Record", "encode_record", "read_records"]
