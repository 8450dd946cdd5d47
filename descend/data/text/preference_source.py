"""Where preferences come from: the user's file, or generated opinions that a simulated annotator has put in order.

Prompts that occur more than once are in one part of the data only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from descend.data.images.labelled import check_shares
from descend.data.reading import show
from descend.data.streams.arrays import generator
from descend.data.text import rated_opinions
from descend.data.text.annotators import Annotator
from descend.data.text.preferences import Ranked, read_preferences
from descend.errors import Mistake
from descend.ranges import Between, Count, Length, NonNegative

PARTS = ("train", "valid", "test")


@dataclass(frozen=True)
class PreferenceParts:
    """train, valid and test, and what is to be said of them."""

    parts: dict[str, list[Ranked]]
    quality: Callable[[str, str], float] | None = None
    """Of a response to a prompt, where it is known exactly."""
    facts: dict[str, Any] = field(default_factory=dict)

    def __getitem__(self, part: str) -> list[Ranked]:
        return self.parts[part]


@dataclass(frozen=True)
class Preferences:
    """Where the preferences come from."""

    path: str = ""
    """A .jsonl file of prompt, chosen and rejected (texts or messages), or prompt and responses; empty: generated."""
    records: Count = 2000
    """Prompts that are generated, each with its responses."""
    responses: Count = 4
    """Responses to each of them."""
    noise: NonNegative = 0.0
    """Of the annotator who ranks them: the difference in quality at which 73% of the comparisons are right; 0: all."""
    vocab: Length = 400
    """Maximum number of tokens, where the tokenizer is learned from the data."""
    valid: Between = 0.15
    """Share of the prompts used for validation."""
    test: Between = 0.15
    """Share of the prompts used for testing."""

    def read(self) -> PreferenceParts:
        """The records, cut into parts by their prompts."""
        check_shares(self.valid, self.test)
        records = read_preferences(self.path) if self.path else self.generate()
        keys = list(dict.fromkeys(record.key for record in records))
        order = torch.randperm(len(keys), generator=generator(0)).tolist()
        held = [max(1, round(share * len(keys))) for share in (self.valid, self.test)]
        if len(keys) <= sum(held):
            raise Mistake(f"{show(self.path)}: {len(keys)} different prompts are too few for three parts; give more")
        ends = {keys[k]: PARTS[1 + (i >= held[0])] for i, k in enumerate(order[: sum(held)])}
        parts: dict[str, list[Ranked]] = {part: [] for part in PARTS}
        for record in records:
            parts[ends.get(record.key, "train")].append(record)
        facts = {"data": self.path or "generated opinions", "prompts": len(keys), "records": len(records)}
        return PreferenceParts(parts, None if self.path else rated_opinions.quality, facts)

    def generate(self) -> list[Ranked]:
        """Answers to generated questions, ranked by an annotator; two answers of one quality are never compared."""
        if self.responses < 2:
            raise Mistake(f"--data.responses {self.responses}: a comparison needs at least 2")
        random, annotate = generator(7), Annotator(rated_opinions.quality, self.noise)
        found = []
        for n in range(self.records):
            prompt = rated_opinions.PROMPTS[n % len(rated_opinions.PROMPTS)]
            by_quality: dict[float, str] = {}
            for text in rated_opinions.answer_differently(prompt, 4 * self.responses, random):
                by_quality.setdefault(rated_opinions.quality(prompt, text), text)
            texts = list(by_quality.values())[: self.responses]
            found.append(Ranked(prompt, tuple(texts[i] for i in annotate(prompt, texts)), f"opinion {n + 1}"))
        return found

    def texts(self, records: Sequence[Ranked]) -> list[str]:
        """What a tokenizer is learned from."""
        return list(dict.fromkeys(text for record in records for text in record.texts))
