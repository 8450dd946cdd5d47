"""What a model that was taught by conversations shows: its answers to the first questions, and its score by task."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from descend.contracts import Exhibit
from descend.data.text.conversations import Dialogue, Record
from descend.sampling.generate import generate
from descend.text.chat_template import ChatTemplate
from descend.text.tokenizer import Tokenizer
from descend.views.attempts import show_each

SHOWN = 12  # answers
WRITTEN = 120  # questions that are answered by writing
LONGEST = 64  # tokens of an answer


class Question(NamedTuple):
    """The messages before an answer, the true answer, and the task it belongs to."""

    messages: Sequence[Any]
    answer: str
    task: str


@dataclass(frozen=True)
class ConversationView:
    """What the report shows of a model and the validation records."""

    model: Any
    tokenizer: Tokenizer
    records: Sequence[Record]

    def show(self) -> list[Exhibit]:
        return show_each({"Answers": self.show_answers})

    def show_answers(self) -> Exhibit:
        """Greedy answers and the share of exact ones, by task where the tasks are known."""
        asked = [one for record in self.records for one in questions(record)][:WRITTEN]
        if not asked:
            return Exhibit("table", "Answers", {"columns": ["records"], "rows": []}, "No record is a conversation.")
        answers = answer(self.model, self.tokenizer, [one.messages for one in asked], LONGEST)
        right: dict[str, list[bool]] = defaultdict(list)
        for one, text in zip(asked, answers, strict=True):
            right[one.task or "all"].append(text.strip() == one.answer.strip())
        rows = [
            [one.messages[-1]["content"], text, one.answer] for one, text in zip(asked[:SHOWN], answers, strict=False)
        ]
        told = ", ".join(f"{task} {sum(found)} of {len(found)}" for task, found in sorted(right.items()))
        return Exhibit(
            "table",
            "Answers",
            {"columns": ["question", "written", "reference"], "rows": rows},
            f"Greedy answers to validation questions. Exact: {told}.",
        )


def questions(record: Record) -> Iterator[Question]:
    """Each of the assistant's turns that is learned, with what was said before it."""
    if isinstance(record, Dialogue):
        turns = [k for k, m in enumerate(record.messages) if m["role"] == "assistant"]
        names = record.task.split()
        for k, turn in enumerate(turns):
            if turn >= record.since:
                task = names[k] if k < len(names) else ""
                yield Question(record.messages[:turn], record.messages[turn]["content"], task)


@torch.no_grad()
def answer(model: Any, tokenizer: Tokenizer, asked: Sequence[Sequence[Any]], longest: int) -> list[str]:
    """The greedy answer to each list of messages."""
    template = ChatTemplate.of(tokenizer)
    stops = template.stops(tokenizer)
    prompts = [template.prompt(messages, tokenizer) for messages in asked]
    room = limit_of(model, longest + max(map(len, prompts))) - max(map(len, prompts))
    written = generate(model.decoder(), prompts, max(room, 1), stop=stops)
    return [tokenizer.decode([token for token in row if token not in stops]) for row in written]


def limit_of(model: Any, most: int) -> int:
    """Tokens that the model can read, at most so many."""
    return min(most, model.config.context) if "context" in type(model.config).__dataclass_fields__ else most
