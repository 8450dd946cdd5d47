"""Labelled texts: the user's file, or passages of the Python documentation with the chapter they come from.

    .jsonl   one object per line: {"text": "..", "label": ".."}; with "text_b" it is a pair of texts
    .tsv     columns of texts and labels, with or without a header line; .csv with commas and quotes

Which column is which is found by name and content (see `table`), or told by flags. The file is cut into train, valid
and test once and for all, class by class, independently of the run's seed; equal texts go to the same part.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor

from descend.data.images.labelled import check_shares, split_by_class
from descend.data.reading import show
from descend.data.streams.arrays import InOrder
from descend.data.streams.by_length import ByLength
from descend.data.streams.splits import describe_leaks, keep_together, split_by_group
from descend.data.text.table import TextRecords, Wanted, read_text_table
from descend.errors import Mistake
from descend.ranges import Fraction, Length
from descend.text.inputs import Inputs

Batch = dict[str, Tensor]
CHAPTERS = {
    "specialnames": "special methods",
    "compound": "compound statements",
    "types": "types",
    "string-methods": "string methods",
    "debugger": "debugger",
    "typesseq": "sequences",
    "typesmapping": "mappings",
    "formatstrings": "format strings",
    "import": "import",
    "execmodel": "execution",
}


@dataclass(frozen=True)
class Labelled:
    """Texts (and second texts, where they are pairs) with classes, and the rows of the three parts."""

    texts: list[str]
    seconds: list[str]
    y: Tensor
    names: tuple[str, ...]
    ids: Tensor
    parts: dict[str, Tensor]
    facts: dict[str, str] = field(default_factory=dict)
    """Columns taken and left out, and leaks, as a run says it."""

    def arrays(self, part: str, inputs: Inputs) -> Batch:
        """x, mask (and segments, for pairs), padded to the longest text of the part; y; ids are lines of the file."""
        rows = self.parts[part].tolist()
        if self.seconds:
            encoded = inputs.batch([inputs.encode(self.texts[i], self.seconds[i]) for i in rows])
        else:
            encoded = inputs.batch([inputs.encode(self.texts[i]) for i in rows])
            del encoded["segments"]
        return {**encoded, "y": self.y[rows], "ids": self.ids[rows]}


@dataclass(frozen=True)
class LabelledText:
    """Where the texts come from, and how they are cut into tokens and parts."""

    path: str = ""
    """A .jsonl, .tsv or .csv file of texts and labels; empty: passages of the Python documentation, by chapter."""
    vocab: Length = 1024
    """Tokens that BPE learns (a pre-trained model brings its own)."""
    valid: Fraction = 0.15
    """Share of the texts used for validation."""
    test: Fraction = 0.15
    """Share of the texts used for testing."""
    text: str = ""
    """Column of the texts, by name or number from 1; empty: found by content."""
    label: str = ""
    """Column of the labels, likewise."""
    group: str = ""
    """Column of what texts belong to, e.g. an author: all of a group go to the same part."""

    def read(self) -> Labelled:
        """Texts, classes and parts."""
        check_shares(self.valid, self.test)
        wanted = Wanted(self.text, self.label, self.group)
        records = read_text_table(Path(self.path), wanted) if self.path else chapters()
        names = tuple(sorted(set(records.labels)))
        if len(names) < 2:
            raise Mistake(f"{show(self.path)}: {len(names)} different labels; a classifier needs two or more")
        number = {name: k for k, name in enumerate(names)}
        y = torch.tensor([number[label] for label in records.labels])
        parts = split_texts(records, y, self.valid, self.test)
        for part, rows in parts.items():
            if not len(rows):
                raise Mistake(f"{show(self.path)}: {len(y)} texts leave none for {part}; give more, or other shares")
        facts = {**records.facts, **describe_leaks(records.keys, parts)}
        return Labelled(records.texts, records.seconds, y, names, torch.tensor(records.lines), parts, facts)


def split_texts(records: TextRecords, y: Tensor, valid: float, test: float) -> dict[str, Tensor]:
    """Rows of the parts: by the column of groups; or class by class, equal texts together where that leaves every part
    something and every class a training text."""
    if records.groups:
        pieces = split_by_group(records.groups, (valid, test))
        if untaught := set(y.tolist()) - set(y[pieces[2]].tolist()):
            rare = records.labels[y.tolist().index(min(untaught))]
            raise Mistake(f"--data.group: all texts labelled {rare!r} are held out; give more groups, or other shares")
    else:
        pieces = split_by_class(y, (valid, test))
        together = keep_together(records.keys, pieces)
        if all(map(len, together)) and len(y[together[2]].unique()) == len(y[pieces[2]].unique()):
            pieces = together
    return dict(zip(("train", "valid", "test"), (pieces[2], pieces[0], pieces[1]), strict=True))


def chapters() -> TextRecords:
    """Passages of the ten longest chapters that Python's help() carries; what appears in two of them is left out."""
    from pydoc_data.topics import topics

    found = [
        (" ".join(passage.split()), label)
        for name, label in CHAPTERS.items()
        for passage in re.split(r"\n\s*\n", topics.get(name, ""))
        if len(passage.strip()) >= 60
    ]
    times = Counter(passage for passage, _ in found)
    once = [(passage, label) for passage, label in found if times[passage] == 1]
    return TextRecords([text for text, _ in once], [label for _, label in once], list(range(1, len(once) + 1)))


def trim_padding(batch: Batch) -> Batch:
    """The batch without the columns that are padding in every row."""
    t = int(batch["mask"].any(dim=0).nonzero().amax()) + 1
    wide = batch["mask"].shape[1]
    return {name: x[:, :t] if x.dim() == 2 and x.shape[1] == wide else x for name, x in batch.items()}


class Trimmed(ByLength):
    """A shuffled stream of padded texts, those of similar length together, each batch as long as its longest text."""

    def __init__(self, arrays: Batch, group: int, batch: int, seed: int, rank: int = 0, world: int = 1):
        classes = arrays["y"] if "y" in arrays and arrays["y"].dim() == 1 else None
        super().__init__(arrays, arrays["mask"].sum(1), group, batch, seed, rank, world, classes)

    def __next__(self) -> Batch:
        return trim_padding(super().__next__())


class TrimmedInOrder(InOrder):
    """The same texts in the same order, each batch as long as its longest text."""

    def __iter__(self) -> Iterator[Batch]:
        return map(trim_padding, super().__iter__())
