"""Texts with a class each, word by word, for recurrent classifiers: the user's, or generated opinions.

    a file      .tsv (text TAB label), .csv or .jsonl ({"text", "label"}), cut into three parts once and for all
    a folder    train, dev (or valid, val) and test files of one of these kinds: the parts as their makers cut them
    nothing     generated opinions such as "the plot was good , not bad"

"good , not bad" and "bad , not good" have the same words: a model that only counts words is right half of the time
(DLN). Words are lower-cased; those seen fewer than `rare` times become <unk>. Padding is 0, on the right.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import torch
from torch import Tensor

from descend.data.images.labelled import check_shares, split_by_class
from descend.data.streams.arrays import InOrder, generator
from descend.data.streams.by_length import ByLength
from descend.data.text.labelled import read_records
from descend.errors import Mistake
from descend.ops.sequences import pad
from descend.text.tokenizer import Tokenizer

Batch = dict[str, Tensor]
PAD = "<pad>"
PARTS = {"train": ("train",), "valid": ("dev", "valid", "val"), "test": ("test",)}
KINDS = (".tsv", ".csv", ".jsonl")
GOOD = ("good", "great", "clever", "moving", "fresh", "bright")
BAD = ("bad", "poor", "dull", "flat", "stale", "weak")
NOUNS = ("film", "plot", "cast", "music", "end", "script")


@dataclass(frozen=True)
class TextSplit:
    """Texts and their classes; ids are lines of the file."""

    texts: list[str]
    labels: list[str]
    ids: list[int]

    def take(self, rows: Sequence[int]) -> TextSplit:
        """Some of them."""
        return TextSplit([self.texts[i] for i in rows], [self.labels[i] for i in rows], [self.ids[i] for i in rows])


@dataclass(frozen=True)
class Opinions:
    """Where the texts come from, and how they are cut into words and parts."""

    path: str = ""
    """A .tsv, .csv or .jsonl file of texts and labels, or a folder of train, dev and test files; empty: generated."""
    vocab: int = 20000
    """Maximum number of words, the most frequent first."""
    rare: int = 2
    """Words of the training texts seen fewer times than this become <unk>."""
    longest: int = 80
    """Words of a text; what comes after is cut off."""
    valid: float = 0.15
    """Share of a single file used for validation."""
    test: float = 0.15
    """Share of a single file used for testing."""

    def read(self) -> dict[str, TextSplit]:
        """train, valid and test."""
        if Path(self.path).is_dir() and self.path:
            return {name: from_file(find_part(Path(self.path), stems)) for name, stems in PARTS.items()}
        check_shares(self.valid, self.test)
        whole = from_file(Path(self.path)) if self.path else generate_opinions()
        names = sorted(set(whole.labels))
        valid, test, train = split_by_class(
            torch.tensor([names.index(x) for x in whole.labels]), (self.valid, self.test)
        )
        parts = {"train": train, "valid": valid, "test": test}
        if empty := [name for name, rows in parts.items() if not len(rows)]:
            raise Mistake(
                f"{self.path}: {len(whole.texts)} texts leave none for {empty[0]}; give more, or other shares"
            )
        return {name: whole.take(rows.tolist()) for name, rows in parts.items()}

    def learn_tokenizer(self, train: TextSplit) -> Tokenizer:
        """The words of the training texts: <pad> is 0, then the most frequent."""
        splits = Tokenizer.of_words([]).inner.pre_tokenizer
        seen = Counter(word for text in train.texts for word, _ in splits.pre_tokenize_str(text.lower()))
        known = [word for word, n in seen.most_common(self.vocab - 2) if n >= self.rare and word != PAD]
        return Tokenizer.of_words([PAD, *known])

    def arrays(self, part: TextSplit, tokenizer: Tokenizer, names: Sequence[str]) -> Batch:
        """x (n, t) filled up with 0, y (n), ids."""
        strange = next((i for i, label in enumerate(part.labels) if label not in names), None)
        if strange is not None:
            raise Mistake(
                f"{self.path}, line {part.ids[strange]}: label {part.labels[strange]!r} is not among the training "
                f"labels {', '.join(names)}; correct it"
            )
        rows = [torch.tensor(ids[: self.longest] or [0]) for ids in tokenizer.encode_many(part.texts)]
        y = torch.tensor([names.index(label) for label in part.labels])
        return {"x": pad(rows)[0], "y": y, "ids": torch.tensor(part.ids)}


def find_part(folder: Path, stems: Sequence[str]) -> Path:
    """The file of one part."""
    for stem, kind in product(stems, KINDS):
        if (folder / f"{stem}{kind}").is_file():
            return folder / f"{stem}{kind}"
    raise Mistake(f"{folder} holds no {stems[0]}.tsv (or .csv, .jsonl); a folder needs train, dev and test")


def from_file(path: Path) -> TextSplit:
    """Every record of a file."""
    records = read_records(path)
    if len({record["label"] for _, record in records}) < 2:
        raise Mistake(f"{path}: all labels are {records[0][1]['label']!r}; a classifier needs two or more")
    return TextSplit([r["text"] for _, r in records], [r["label"] for _, r in records], [line for line, _ in records])


def generate_opinions() -> TextSplit:
    """Opinions in four forms, half of them against their first word: order decides, not the words."""
    found = []
    for noun, (label, a, b) in product(
        NOUNS, [(y, a, b) for y, xs, zs in (("positive", GOOD, BAD), ("negative", BAD, GOOD)) for a in xs for b in zs]
    ):
        found += [
            (f"the {noun} was {a} , not {b}", label),
            (f"not {b} at all , the {noun} was {a}", label),
            (f"i expected a {b} {noun} but found it {a}", label),
            (f"some call the {noun} {b} , i call it {a}", label),
        ]
    order = torch.randperm(len(found), generator=generator(0)).tolist()
    return TextSplit([found[i][0] for i in order], [found[i][1] for i in order], list(range(1, len(found) + 1)))


def trim_padding(batch: Batch) -> Batch:
    """Without the columns that are padding in every row."""
    words = int((batch["x"] != 0).sum(1).amax().clamp(min=1))
    return {**batch, "x": batch["x"][:, :words]}


class ShuffledTexts(ByLength):
    """Texts of similar length together, each batch as long as its longest text."""

    def __init__(self, arrays: Batch, group: int, batch: int, seed: int, rank: int = 0, world: int = 1):
        super().__init__(arrays, (arrays["x"] != 0).sum(1), group, batch, seed, rank, world)

    def __next__(self) -> Batch:
        return trim_padding(super().__next__())


class TextsInOrder(InOrder):
    """The same texts in the same order, each batch as long as its longest text."""

    def __iter__(self) -> Iterator[Batch]:
        return map(trim_padding, super().__iter__())
