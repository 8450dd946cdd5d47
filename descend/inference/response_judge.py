"""Rewards of responses, by a reward model: r(x, y) for a prompt x and each response y, the highest first.

    predict("how was the film ?", "good .", "it rained .")     the prompt, and responses to it
    predict("pairs.jsonl")                                      every record of a file of preferences

Only differences between responses to one prompt mean anything: P(y_1 ≻ y_2 | x) = σ(r(x, y_1) − r(x, y_2)).

Systems: reward-model
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from descend.data.text.preferences import PreferencesInOrder, Ranked, read_preferences, tokenize
from descend.errors import Mistake
from descend.inference.answers import Answer
from descend.inference.trained import BATCH, Trained
from descend.models._text_scores import ScoresTexts
from descend.tasks.reward import RankResponses
from descend.text.tokenizer import Tokenizer
from descend.views.preferences import name_prompt


def rates_responses(trained: Trained) -> bool:
    """Whether the model is a reward model."""
    return isinstance(trained.model, ScoresTexts)


@dataclass(frozen=True)
class ResponseJudge:
    """A reward model and its tokenizer."""

    model: Any
    tokenizer: Tokenizer
    takes = "a prompt and responses to it, or .jsonl files of preferences"

    @classmethod
    def read(cls, trained: Trained) -> ResponseJudge:
        return cls(trained.model, Tokenizer.load(trained.folder))

    @torch.no_grad()
    def rate(self, records: Sequence[Ranked]) -> list[list[float]]:
        """r of each response of each record."""
        where, task = next(self.model.parameters()).device, RankResponses(self.model)
        arrays = tokenize(records, self.tokenizer, self.model.config.context)
        found: list[list[float]] = []
        for batch in PreferencesInOrder(arrays, BATCH):
            rewards, _ = task.rewards({name: x.to(where) for name, x in batch.items()})
            found += rewards.tolist()
        return [row[: len(record.responses)] for row, record in zip(found, records, strict=True)]

    def predict(self, inputs: Sequence[str]) -> list[Answer]:
        """The responses to each prompt with their rewards, the highest first."""
        records = read_inputs(inputs)
        return [
            Answer(
                name_prompt(record),
                tuple(sorted(zip(record.responses, rewards, strict=True), key=lambda pair: -pair[1])),
                measure="reward",
            )
            for record, rewards in zip(records, self.rate(records), strict=True)
        ]


def read_inputs(inputs: Sequence[str]) -> list[Ranked]:
    """Files of preferences, or one prompt with its responses."""
    files = [text for text in inputs if text.endswith(".jsonl")]
    if files and len(files) == len(inputs):
        return [record for file in files for record in read_preferences(Path(file))]
    prompt, *responses = inputs
    if not responses:
        raise Mistake("a reward model compares responses; give the prompt, then its responses: PROMPT RESPONSE [..]")
    if len(set(responses)) < len(responses):
        raise Mistake("two of the responses are the same; give each once")
    return [Ranked(prompt, tuple(responses), "what is asked")]
