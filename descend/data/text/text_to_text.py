"""Text to text: every task is a source text and a target text, told apart by a prefix in the source.

    p(y | x) = Π_s p(y_s | x, y_<s)        "translate English to German: That is good."  ->  "Das ist gut."
                                           "sentiment: This movie is great!"             ->  "positive"
                                           "add: 2 + 2"                                  ->  "4"

One model with one loss serves all tasks; classes are words, and any other answer is not a class.

    a file     .tsv     one pair per line, source TAB target
               .jsonl   one object per line, with "source" and "target"
    a folder   train.de train.en, and val or test the same way, one sentence per line; each may be gzipped

Without a path the pairs are generated (`descend.data.toys.number_words`).

Systems: text-to-text-framework
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from descend.contracts import Batch
from descend.data.reading import check_file, is_folder, parse_object, read_records, show
from descend.data.streams.arrays import InOrder
from descend.data.streams.by_length import ByLength
from descend.data.streams.splits import describe_leaks
from descend.data.streams.token_budget import TokenBudget
from descend.data.toys import number_words
from descend.errors import Mistake, nearest
from descend.ranges import Count, Fraction, Length, Whole
from descend.text.tokenizer import Tokenizer

Pair = tuple[str, str]
PAD = "<pad>"
SPLITS = {"train": ("train",), "valid": ("val", "valid", "dev"), "test": ("test",)}


class Labels:
    """Classes as words, and back."""

    def __init__(self, words: Sequence[str]):
        if len({word.strip().lower() for word in words}) != len(words):
            raise Mistake(f"label words {list(words)} repeat: every class needs its own")
        self.words = tuple(words)

    def pair(self, prefix: str, text: str, label: int) -> Pair:
        """An example as text."""
        return f"{prefix}: {text}", self.words[label]

    def parse(self, answer: str) -> int | None:
        """The class that an answer names; None when it names none."""
        said = answer.strip().lower()
        return next((i for i, word in enumerate(self.words) if word.strip().lower() == said), None)


@dataclass(frozen=True)
class Split:
    """Pairs for training, for selecting and for one last look (often none)."""

    train: list[Pair]
    valid: list[Pair]
    test: list[Pair]

    def describe_leaks(self) -> dict[str, str]:
        """What a run says of held-out sources that are in training too."""
        sources: list[str] = []
        rows = {}
        for part, pairs in (("train", self.train), ("valid", self.valid), ("test", self.test)):
            rows[part] = torch.arange(len(sources), len(sources) + len(pairs))
            sources += [" ".join(source.lower().split()) for source, _ in pairs]
        return describe_leaks(sources, rows)


@dataclass(frozen=True)
class TextPairs:
    """Where the pairs come from and how they are cut into tokens."""

    path: str = ""
    """A .tsv or .jsonl file, or a folder of parallel text; empty: generated tasks."""
    tasks: tuple[str, ...] = ("words", "date", "add")
    """Which tasks are generated: words, date, add."""
    count: Count = 20000
    """Pairs that are generated."""
    source: str = "de"
    """In a folder: the ending of the source files."""
    target: str = "en"
    """In a folder: the ending of the target files."""
    tokenizer: str = "characters"
    """characters or bpe (byte-level, one for both sides)."""
    vocab: Length = 8000
    """Tokens that BPE learns."""
    longest: Length = 64
    """Maximum tokens of a source or a target; longer pairs are left out of training and validation."""
    valid: Fraction = 0.05
    """Share of the pairs used for validation, where the data has no validation part."""
    budget: Whole = 0
    """Maximum tokens of a batch on each side, padding included, in the place of --batch; 0: --batch pairs."""

    def read(self) -> Split:
        """The pairs, or a mistake that names the file."""
        if not self.path:
            wrong = [name for name in self.tasks if name not in number_words.TASKS]
            if wrong or not self.tasks:
                name, known = (wrong or [""])[0], list(number_words.TASKS)
                raise Mistake(f"--data.tasks {name!r}: choose {', '.join(known)}.{nearest(name, known)}")
            return self.cut(number_words.pairs(self.tasks, self.count))
        path = Path(self.path)
        if is_folder(path):
            return self.folder(path)
        check_file(path)
        return self.cut(read_file(path))

    def read_unseen(self) -> list[Pair]:
        """Every pair of a file, the test pairs of a folder."""
        path = Path(self.path)
        if not is_folder(path):
            check_file(path)
            pairs = read_file(path)
        else:
            pairs = self.parallel(path, SPLITS["test"])
            if not pairs:
                raise Mistake(f"{show(path)}: no test.{self.source} and test.{self.target} to be judged by; add them")
        if not pairs:
            raise Mistake(f"{show(path)} holds no pair; give sources and targets")
        return pairs

    def cut(self, pairs: list[Pair]) -> Split:
        """The last pairs validate."""
        cut = len(pairs) - max(round(len(pairs) * self.valid), 1)
        if cut < 1:
            raise Mistake(f"{show(self.path)}: {len(pairs)} pairs are too few to train and to validate with")
        return Split(pairs[:cut], pairs[cut:], [])

    def folder(self, path: Path) -> Split:
        parts = {part: self.parallel(path, stems) for part, stems in SPLITS.items()}
        if not parts["train"]:
            raise Mistake(
                f"{show(path)}: no train.{self.source} and train.{self.target}; see --data.source, --data.target"
            )
        if not parts["valid"]:
            whole = self.cut(parts["train"])
            return Split(whole.train, whole.valid, parts["test"])
        return Split(parts["train"], parts["valid"], parts["test"])

    def parallel(self, path: Path, stems: Sequence[str]) -> list[Pair]:
        """The lines of the two files that are called one of `stems`, side by side."""
        for stem in stems:
            files = [find(path, stem, ending) for ending in (self.source, self.target)]
            if files[0] is not None and files[1] is not None:
                sides = [lines(file) for file in files if file is not None]
                if len(sides[0]) != len(sides[1]):
                    counts = f"{files[0].name} has {len(sides[0])} lines, {files[1].name} {len(sides[1])}"
                    raise Mistake(f"{show(path)}: {counts}; parallel text has one line for each")
                return [(a, b) for a, b in zip(*sides, strict=True) if a and b]
        return []

    def learn_tokenizer(self, pairs: Sequence[Pair]) -> Tokenizer:
        """One tokenizer for both sides, learned from the training pairs; its last token is the padding."""
        text = "\n".join(side for pair in pairs for side in pair)
        if self.tokenizer not in ("bpe", "characters"):
            raise Mistake(f"--data.tokenizer {self.tokenizer}: choose bpe or characters")
        tokenizer = Tokenizer.bpe(text, self.vocab) if self.tokenizer == "bpe" else Tokenizer.characters(text)
        return tokenizer.with_specials({"pad_token": PAD})

    def arrays(self, pairs: Sequence[Pair], tokenizer: Tokenizer, what: str) -> dict[str, Tensor]:
        """x (n, s) and y (n, t), each ended by the end token and filled up; `ids` are the pairs' numbers."""
        pad, end = specials(tokenizer)
        sides = [tokenizer.encode_many([pair[side] for pair in pairs]) for side in (0, 1)]
        rows = [([*x, end], [*y, end]) for x, y in zip(*sides, strict=True)]
        kept = [i for i, (x, y) in enumerate(rows) if max(len(x), len(y)) <= self.longest]
        if not kept:
            raise Mistake(f"none of the {len(pairs)} {what} pairs has at most {self.longest} tokens: --data.longest")
        x, y = (rectangle([rows[i][side] for i in kept], pad) for side in (0, 1))
        return {"x": x, "y": y, "ids": torch.tensor(kept)}


def specials(tokenizer: Tokenizer) -> tuple[int, int]:
    """(pad, end) of a tokenizer that was learned here."""
    return tokenizer.special("pad_token") or 0, tokenizer.end or 0


def rectangle(rows: Sequence[Sequence[int]], pad: int) -> Tensor:
    """Rows filled up on the right to the longest one."""
    filled = torch.full((len(rows), max(map(len, rows))), pad, dtype=torch.int32)
    inside = torch.arange(filled.shape[1]) < torch.tensor([len(row) for row in rows])[:, None]
    filled[inside] = torch.tensor([token for row in rows for token in row], dtype=torch.int32)
    return filled


def trim_pairs(batch: dict[str, Tensor], pad: int) -> dict[str, Tensor]:
    """Without the columns that are padding in every row."""
    found = dict(batch)
    for name in ("x", "y"):
        found[name] = batch[name][:, : int((batch[name] != pad).any(0).sum())].long()
    return found


class ShuffledPairs(ByLength):
    """Minibatches of pairs of similar length, cut to the longest of each batch."""

    def __init__(
        self, arrays: dict[str, Tensor], pad: int, group: int, batch: int, seed: int, rank: int = 0, world: int = 1
    ):
        length = (arrays["x"] != pad).sum(1) + (arrays["y"] != pad).sum(1)
        super().__init__(arrays, length, group, batch, seed, rank, world)
        self.pad = pad

    def __next__(self) -> dict[str, Tensor]:
        return trim_pairs(super().__next__(), self.pad)


class BudgetedPairs(TokenBudget):
    """Batches of pairs that hold so many tokens on each side, cut to the longest of each batch."""

    def __init__(self, arrays: Batch, pad: int, budget: int, seed: int, parts: int, rank: int = 0, world: int = 1):
        lengths = torch.stack([(arrays[side] != pad).sum(1) for side in ("x", "y")], dim=1)
        super().__init__(arrays, lengths, budget, seed, parts, rank, world, lambda batch: trim_pairs(batch, pad))

    def describe(self) -> dict[str, str]:
        """What a run tells of its batches."""
        batches, padding = len(self.plan(0)), self.padding()
        return {"batches": f"{batches:,} an epoch of {self.budget:,} tokens on each side; {padding:.1%} padding"}


class PairsInOrder(InOrder):
    """The same pairs again and again, the short ones first."""

    def __init__(self, arrays: dict[str, Tensor], pad: int, batch: int):
        order = (arrays["y"] != pad).sum(1).argsort(stable=True)
        super().__init__({name: tensor[order] for name, tensor in arrays.items()}, batch)
        self.pad = pad

    def __iter__(self) -> Iterator[dict[str, Tensor]]:
        return (trim_pairs(batch, self.pad) for batch in super().__iter__())


def read_file(path: Path) -> list[Pair]:
    """The pairs of a .tsv or .jsonl file (or .gz of one)."""
    kind = path.name.removesuffix(".gz").rpartition(".")[2]
    if kind not in ("tsv", "jsonl"):
        raise Mistake(f"{show(path)}: pairs are read from .tsv, .jsonl or a folder of parallel text")
    read = from_tsv if kind == "tsv" else from_json
    return [read(line, f"{show(path)}, line {i}") for i, line in enumerate(lines(path), start=1) if line]


def from_tsv(line: str, where: str) -> Pair:
    fields = line.split("\t")
    if len(fields) != 2:
        raise Mistake(f"{where}: {len(fields)} fields instead of 2; write source TAB target")
    return fields[0].strip(), fields[1].strip()


def from_json(line: str, where: str) -> Pair:
    value = parse_object(line, where)
    sides = value.get("source"), value.get("target")
    if not all(isinstance(side, str | int | float) for side in sides):
        raise Mistake(f'{where}: not an object with "source" and "target"')
    return str(sides[0]), str(sides[1])


def find(folder: Path, stem: str, ending: str) -> Path | None:
    """stem.ending or stem*.ending, gzipped or not; the plain name first."""
    patterns = (f"{stem}{rest}.{ending}{packed}" for rest in ("", "*") for packed in ("", ".gz"))
    return next((path for pattern in patterns for path in sorted(folder.glob(pattern))), None)


def lines(path: Path) -> list[str]:
    """The lines of a UTF-8 file, plain or gzipped, stripped."""
    found = read_records(path).split("\n")
    return [line.strip() for line in (found[:-1] if not found[-1] else found)]
