"""Texts with a class each, word by word, for recurrent classifiers: the user's, or generated opinions.

    a file      .tsv, .csv or .jsonl with a column of texts and one of labels (see `table`), cut into three parts once
                and for all; equal texts go to the same part
    a folder    train, dev (or valid, val) and test files of one of these kinds: the parts as their makers cut them
    nothing     generated opinions such as "the plot was good , not bad"

"good , not bad" and "bad , not good" have the same words: a model that only counts words is right half of the time
(DLN). Words are lower-cased; those seen fewer than `rare` times become <unk>. Padding is 0, on the right.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

import torch
from torch import Tensor

from descend.data.images.labelled import check_shares
from descend.data.reading import is_folder, show
from descend.data.streams.arrays import InOrder, generator
from descend.data.streams.by_length import ByLength
from descend.data.streams.splits import describe_leaks
from descend.data.text.labelled import split_texts
from descend.data.text.table import TextRecords, Wanted, read_text_table
from descend.errors import Mistake
from descend.ops.sequences import pad
from descend.ranges import Count, Fraction, Length
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


@dataclass(frozen=True)
class OpinionParts:
    """train, valid and test, and what is to be said of them: columns taken and left out, leaks."""

    parts: dict[str, TextSplit]
    facts: dict[str, str] = field(default_factory=dict)

    def __getitem__(self, part: str) -> TextSplit:
        return self.parts[part]


@dataclass(frozen=True)
class Opinions:
    """Where the texts come from, and how they are cut into words and parts."""

    path: str = ""
    """A .tsv, .csv or .jsonl file of texts and labels, or a folder of train, dev and test files; empty: generated."""
    vocab: Length = 20000
    """Maximum number of words, the most frequent first."""
    rare: Count = 2
    """Words of the training texts seen fewer times than this become <unk>."""
    longest: Length = 80
    """Words of a text; what comes after is cut off."""
    valid: Fraction = 0.15
    """Share of a single file used for validation."""
    test: Fraction = 0.15
    """Share of a single file used for testing."""
    text: str = ""
    """Column of the texts, by name or number from 1; empty: found by content."""
    label: str = ""
    """Column of the labels, likewise."""
    group: str = ""
    """Column of what texts belong to, e.g. an author: all of a group go to the same part of a single file."""

    def read(self) -> OpinionParts:
        """train, valid and test."""
        wanted = Wanted(self.text, self.label, self.group)
        if self.path and is_folder(self.path):
            return read_folder(Path(self.path), wanted)
        check_shares(self.valid, self.test)
        whole = from_file(Path(self.path), wanted) if self.path else generate_opinions()
        names = {label: k for k, label in enumerate(sorted(set(whole.labels)))}
        rows = split_texts(whole, torch.tensor([names[x] for x in whole.labels]), self.valid, self.test)
        if empty := [name for name, which in rows.items() if not len(which)]:
            raise Mistake(
                f"{show(self.path)}: {len(whole.texts)} texts leave none for {empty[0]}; give more, or other shares"
            )
        facts = {**whole.facts, **describe_leaks(whole.keys, rows)}
        return OpinionParts({name: take(whole, which.tolist()) for name, which in rows.items()}, facts)

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
                f"{show(self.path)}, line {part.ids[strange]}: label {part.labels[strange]!r} is not among the "
                f"training labels {', '.join(names)}; correct it"
            )
        rows = [torch.tensor(ids[: self.longest] or [0]) for ids in tokenizer.encode_many(part.texts)]
        y = torch.tensor([names.index(label) for label in part.labels])
        return {"x": pad(rows)[0], "y": y, "ids": torch.tensor(part.ids)}


def find_part(folder: Path, stems: Sequence[str]) -> Path:
    """The file of one part."""
    for stem, kind in product(stems, KINDS):
        path = folder / f"{stem}{kind}"
        if path.exists() or path.is_symlink():
            return path
    raise Mistake(f"{show(folder)} holds no {stems[0]}.tsv (or .csv, .jsonl); a folder needs train, dev and test")


def read_folder(folder: Path, wanted: Wanted) -> OpinionParts:
    """The parts as their makers cut them; columns are those of the training file."""
    found = {"train": from_file(find_part(folder, PARTS["train"]), wanted)}
    for name in ("valid", "test"):
        found[name] = from_file(find_part(folder, PARTS[name]), found["train"].columns)
    ends = {name: len(records.texts) for name, records in found.items()}
    rows, start = {}, 0
    for name, n in ends.items():
        rows[name], start = torch.arange(start, start + n), start + n
    keys = [key for records in found.values() for key in records.keys]
    facts = {**found["train"].facts, **describe_leaks(keys, rows)}
    return OpinionParts({name: take(records, range(ends[name])) for name, records in found.items()}, facts)


def from_file(path: Path, wanted: Wanted) -> TextRecords:
    """Every record of a file."""
    records = read_text_table(path, wanted)
    if len(set(records.labels)) < 2:
        raise Mistake(f"{show(path)}: all labels are {records.labels[0]!r}; a classifier needs two or more")
    return records


def take(records: TextRecords, rows: Sequence[int]) -> TextSplit:
    """Some of the records."""
    return TextSplit(
        [records.texts[i] for i in rows], [records.labels[i] for i in rows], [records.lines[i] for i in rows]
    )


def generate_opinions() -> TextRecords:
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
    return TextRecords([found[i][0] for i in order], [found[i][1] for i in order], list(range(1, len(found) + 1)))


def trim_padding(batch: Batch) -> Batch:
    """Without the columns that are padding in every row."""
    words = int((batch["x"] != 0).sum(1).amax().clamp(min=1))
    return {**batch, "x": batch["x"][:, :words]}


class ShuffledTexts(ByLength):
    """Texts of similar length together, each batch as long as its longest text."""

    def __init__(self, arrays: Batch, group: int, batch: int, seed: int, rank: int = 0, world: int = 1):
        super().__init__(arrays, (arrays["x"] != 0).sum(1), group, batch, seed, rank, world, arrays["y"])

    def __next__(self) -> Batch:
        return trim_padding(super().__next__())


class TextsInOrder(InOrder):
    """The same texts in the same order, each batch as long as its longest text."""

    def __iter__(self) -> Iterator[Batch]:
        return map(trim_padding, super().__iter__())
