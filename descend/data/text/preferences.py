"""Preferences: prompts with responses in the order in which people liked them.

    {"prompt": "how was it ?", "chosen": "good .", "rejected": "bad ."}        texts
    {"prompt": [messages], "chosen": [messages], "rejected": [messages]}       or with the prompt in both of them
    {"prompt": "..", "responses": ["best", "..", "worst"]}                     K responses: K(K−1)/2 pairs

Messages become text by the tokenizer's chat template; prompts and responses that are texts do not, they are put end to
end with the end of a text after them. What counts are the tokens of the response.

Systems: preference-data
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from descend.data.reading import read_objects, show
from descend.data.streams.arrays import InOrder, Shuffled
from descend.data.text.conversations import check_turns, ended
from descend.errors import Mistake, nearest
from descend.text.chat_template import ChatTemplate, check_messages
from descend.text.tokenizer import Tokenizer

Batch = dict[str, Tensor]
Message = Mapping[str, Any]
FIELDS = ("prompt", "chosen", "rejected", "responses")


@dataclass(frozen=True)
class Ranked:
    """A prompt and two or more responses, the best first."""

    prompt: str | tuple[Message, ...]
    responses: tuple[str, ...]
    where: str
    """File and line, for messages."""

    @property
    def key(self) -> str:
        """What makes two prompts the same."""
        return self.prompt if isinstance(self.prompt, str) else repr([sorted(turn.items()) for turn in self.prompt])

    @property
    def texts(self) -> list[str]:
        """All that is said."""
        asked = [self.prompt] if isinstance(self.prompt, str) else [turn["content"] for turn in self.prompt]
        return [*asked, *self.responses]


def split_pairs(records: Iterable[Ranked]) -> list[Ranked]:
    """Every ranking as its k(k−1)/2 pairs."""
    return [
        Ranked(record.prompt, pair, record.where) for record in records for pair in combinations(record.responses, 2)
    ]


# Reading


def read_preferences(path: str | Path) -> list[Ranked]:
    """The records of a .jsonl file."""
    found = [read_record(record, f"{show(path)}, line {line}") for line, record in read_objects(path)]
    if not found:
        raise Mistake(f"{show(path)} holds no record; each line is a JSON object with prompt, chosen and rejected")
    return found


def read_record(record: Mapping[str, Any], where: str) -> Ranked:
    """One line."""
    if "responses" in record:
        prompt, texts = record.get("prompt"), record["responses"]
        if not isinstance(texts, list) or len(texts) < 2:
            raise Mistake(f'{where}: "responses" lists two or more texts, the best first')
        sides = {f"response {i + 1}": text for i, text in enumerate(texts)}
    else:
        for name in ("chosen", "rejected"):
            if name not in record:
                near = nearest(name, [key for key in record if key not in FIELDS])
                raise Mistake(f"{where}: there is no {name!r}; a record has prompt, chosen and rejected.{near}")
        prompt, sides = record.get("prompt"), {name: record[name] for name in ("chosen", "rejected")}
    read = [read_side(prompt, side, f"{where}: {name}") for name, side in sides.items()]
    if isinstance(read[0][0], tuple):
        check_dialogue([*read[0][0], {"role": "assistant", "content": read[0][1]}], where)
    prompts, responses = [each[0] for each in read], [each[1] for each in read]
    if any(other != prompts[0] for other in prompts):
        raise Mistake(f"{where}: chosen and rejected answer different prompts; both must begin with the same messages")
    names = list(sides)
    for i, j in combinations(range(len(responses)), 2):
        if responses[i] == responses[j]:
            raise Mistake(
                f"{where}: {names[i]} and {names[j]} are equal, so nothing is preferred; leave the record out"
            )
    return Ranked(prompts[0], tuple(responses), where)


def read_side(prompt: Any, side: Any, where: str) -> tuple[str | tuple[Message, ...], str]:
    """The prompt, and the response as a text."""
    if isinstance(side, str):
        response = side
        if not isinstance(prompt, str | list) or not prompt:
            raise Mistake(f'{where}: there is no "prompt" that it answers; give a text or a list of messages')
        asked = prompt if isinstance(prompt, str) else read_turns(prompt, where)
    else:
        turns = read_turns(side, where)
        if turns[-1]["role"] != "assistant":
            raise Mistake(f"{where}: the last message is the {turns[-1]['role']}'s; it must be the assistant's answer")
        before = read_turns(prompt, where) if isinstance(prompt, list) and prompt else ()
        if isinstance(prompt, str) and prompt:
            before = ({"role": "user", "content": prompt},)
        asked, response = (*before, *turns[:-1]), turns[-1]["content"]
        if not asked:
            raise Mistake(f"{where}: an answer to nothing; give a prompt before it")
    if not response.strip():
        raise Mistake(f"{where}: is empty; write a response, or leave the record out")
    return asked, response


def check_dialogue(turns: Sequence[Message], where: str) -> None:
    """Refuse messages that can be no conversation."""
    try:
        check_turns(turns)
    except Mistake as mistake:
        raise Mistake(f"{where}: {mistake}") from None


def read_turns(value: Any, where: str) -> tuple[Message, ...]:
    """A list of messages."""
    if not isinstance(value, list) or not all(isinstance(turn, Mapping) for turn in value):
        raise Mistake(f"{where}: a {type(value).__name__}; give a text or a list of messages with role and content")
    try:
        check_messages(value)
    except Mistake as mistake:
        raise Mistake(f"{where}: {mistake}") from None
    return tuple({"role": turn["role"], "content": turn["content"]} for turn in value)


# Tokens


def begin_answer(record: Ranked, tokenizer: Tokenizer) -> list[int]:
    """The tokens that a response follows."""
    if isinstance(record.prompt, str):
        return tokenizer.encode(record.prompt)
    return ChatTemplate.of(tokenizer).prompt(record.prompt, tokenizer)


def encode(record: Ranked, tokenizer: Tokenizer, longest: int) -> tuple[list[int], list[list[int]]]:
    """The tokens of the prompt, and of each response with its end; together no longer than `longest`."""
    prompt = begin_answer(record, tokenizer)
    if len(prompt) >= longest:
        raise Mistake(
            f"{record.where}: the prompt has {len(prompt)} tokens, so with {longest} in all nothing is left of the "
            f"responses; shorten it, or give a larger --model.context"
        )
    found = []
    for response in record.responses:
        if isinstance(record.prompt, str):
            tokens = ended(tokenizer.encode(response), tokenizer)
        else:
            turns = [*record.prompt, {"role": "assistant", "content": response}]
            tokens = ChatTemplate.of(tokenizer).encode(turns, tokenizer)[0][len(prompt) :]
        found.append(tokens[: longest - len(prompt)])
    for i, j in combinations(range(len(found)), 2):
        if found[i] == found[j]:
            raise Mistake(
                f"{record.where}: responses {i + 1} and {j + 1} differ only after token {longest}, where they are cut; "
                f"shorten them, or give a larger --model.context"
            )
    return prompt, found


def tokenize(records: Sequence[Ranked], tokenizer: Tokenizer, longest: int) -> Batch:
    """tokens (n, K, t), zeros after each end, and which are the response's: written (n, K, t); where a record has fewer
    than K responses, nothing of the rest is written."""
    coded = [encode(record, tokenizer, longest) for record in records]
    most = max(len(record.responses) for record in records)
    t = max(len(prompt) + len(response) for prompt, responses in coded for response in responses)
    tokens = torch.zeros(len(records), most, t, dtype=torch.long)
    written = torch.zeros_like(tokens, dtype=torch.bool)
    for n, (prompt, responses) in enumerate(coded):
        for k, response in enumerate(responses):
            whole = torch.tensor([*prompt, *response])
            tokens[n, k, : len(whole)] = whole
            written[n, k, len(prompt) : len(whole)] = True
    return {"tokens": tokens, "written": written, "ids": torch.arange(len(records))}


def tokenize_prompts(records: Sequence[Ranked], tokenizer: Tokenizer, longest: int) -> list[list[int]]:
    """The different prompts, those of at most `longest` tokens."""
    first = {record.key: record for record in records}
    found = [begin_answer(record, tokenizer) for record in first.values()]
    kept = [prompt for prompt in found if len(prompt) <= longest]
    if not kept:
        raise Mistake(
            f"the shortest prompt has {min(map(len, found))} tokens, and {longest} leave room for an answer; "
            f"give a larger --model.context"
        )
    return kept


def trim(batch: Batch) -> Batch:
    """Without the columns that are padding in every row."""
    last = int(batch["written"].flatten(0, -2).any(0).nonzero().max()) + 1
    return {**batch, "tokens": batch["tokens"][..., :last], "written": batch["written"][..., :last]}


class ShuffledPreferences(Shuffled):
    """Each batch as long as its longest text."""

    def __next__(self) -> Batch:
        return trim(super().__next__())


class PreferencesInOrder(InOrder):
    """The same records in the same order."""

    def __iter__(self) -> Iterator[Batch]:
        return map(trim, super().__iter__())
