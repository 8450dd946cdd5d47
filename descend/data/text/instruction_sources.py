"""Where instructions with good answers come from: other data sets, several collections mixed, a larger model.

    reformatted    a review and its class   ->  "Classify the sentiment of this review as ..: .."  "positive"
                   a sentence and its translation  ->  "Translate to French: .."  "Le chat dort."
    synthetic      instructions, and what a teacher model answers: training on them is distillation by sequences
    mixed          n_i = the share of source i, of so many records in all: 10,000 human + 100,000 reformatted
                   + 50,000 synthetic in the book's example (VOM 13.5.4), 1/16, 10/16 and 5/16

Every converted record can be read back: the class that an answer names is the class it was made from.

Systems: instruction-dataset
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from descend.data.text.conversations import Dialogue, Record
from descend.data.text.text_to_text import Labels
from descend.errors import Mistake, nearest

BOOK_MIX = {"human": 10_000, "reformatted": 100_000, "synthetic": 50_000}
"""The example of VOM 13.5.4."""
SENTIMENT = "Classify the sentiment of this review as positive or negative: {text}"
TRANSLATION = "Translate to French: {text}"
GAP = "{text}"


@dataclass(frozen=True)
class InstructionTemplate:
    """An instruction with a gap for the text of a record."""

    instruction: str

    def __post_init__(self) -> None:
        if self.instruction.count(GAP) != 1:
            raise Mistake(f"an instruction needs one {GAP} where the text of a record goes: {self.instruction!r}")

    def convert(self, text: str, answer: str, where: str = "") -> Dialogue:
        """A record of its text and the answer to it."""
        asked = self.instruction.replace(GAP, text)
        return Dialogue(where, ({"role": "user", "content": asked}, {"role": "assistant", "content": answer}))

    def extract(self, record: Dialogue) -> tuple[str, str]:
        """Back to the text and the answer."""
        before, after = self.instruction.split(GAP)
        asked, answer = (message["content"] for message in record.messages)
        if not (asked.startswith(before) and asked.endswith(after)):
            raise Mistake(f"{record.where}: this record was not made by {self.instruction!r}")
        return asked[len(before) : len(asked) - len(after)], answer


def convert_classes(
    texts: Sequence[str], classes: Sequence[int], words: Sequence[str], instruction: str = SENTIMENT
) -> list[Record]:
    """Texts and the numbers of their classes as instructions; the answer is the word of the class."""
    labels, template = Labels(words), InstructionTemplate(instruction)
    pairs = zip(texts, classes, strict=True)
    return [template.convert(text, labels.words[y], f"record {i}") for i, (text, y) in enumerate(pairs, start=1)]


def convert_pairs(pairs: Sequence[tuple[str, str]], instruction: str = TRANSLATION) -> list[Record]:
    """Sources and targets as instructions."""
    template = InstructionTemplate(instruction)
    return [template.convert(x, y, f"record {i}") for i, (x, y) in enumerate(pairs, start=1)]


def share_counts(shares: Mapping[str, float], total: int) -> dict[str, int]:
    """How many of `total` each source gives: in proportion, the largest remainders rounded up."""
    if not shares or min(shares.values()) < 0 or not sum(shares.values()) > 0:
        raise Mistake(f"the shares of a mix must be 0 or more, and not all 0: {dict(shares)}")
    whole = sum(map(Fraction, shares.values()))
    exact = {name: Fraction(share) / whole * total for name, share in shares.items()}
    counts = {name: int(value) for name, value in exact.items()}
    missing = total - sum(counts.values())
    for name in sorted(exact, key=lambda name: counts[name] - exact[name])[:missing]:
        counts[name] += 1
    return counts


def mix_records(
    sources: Mapping[str, Sequence[Record]], shares: Mapping[str, float], total: int, seed: int = 0
) -> list[Record]:
    """`total` records of several sources in these proportions, drawn without repetition and shuffled."""
    for name in shares:
        if name not in sources:
            raise Mistake(f"the mix has no source {name!r}.{nearest(name, sources)} Sources: {', '.join(sources)}")
    chance, found = random.Random(seed), list[Record]()
    for name, count in share_counts(shares, total).items():
        if count > len(sources[name]):
            raise Mistake(f"the source {name!r} has {len(sources[name]):,} records, and its share needs {count:,}")
        found += chance.sample(list(sources[name]), count)
    chance.shuffle(found)
    return found


Answers = Callable[[Sequence[Sequence[Mapping[str, Any]]]], list[str]]
"""Lists of messages -> an answer to each."""


def ask_teacher(teacher: Answers, instructions: Sequence[str]) -> tuple[list[Record], int]:
    """Records of what a model answers, and how many instructions it had no words for."""
    asked = [({"role": "user", "content": instruction},) for instruction in instructions]
    answers = teacher(asked)
    found: list[Record] = [
        Dialogue(f"teacher {i}", (*messages, {"role": "assistant", "content": answer}))
        for i, (messages, answer) in enumerate(zip(asked, answers, strict=True), start=1)
        if answer.strip()
    ]
    return found, len(asked) - len(found)
