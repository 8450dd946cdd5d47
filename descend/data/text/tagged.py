"""Sentences whose words have tags: the user's file, or Python source with the kind of each word.

.jsonl   one object per line: {"tokens": ["Paul", "runs"], "tags": ["B-PER", "O"]}
others   CoNLL: a word and its tag on a line (first and last column), an empty line after each sentence

Python   words and signs of standard-library source, tagged by `tokenize`: COMMENT, KEYWORD, NAME, NUMBER, OP, STRING
         ("for" is a KEYWORD, but in a string or a comment it is not: the context decides)
"""

from __future__ import annotations

import importlib.util
import io
import keyword
import re
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor

from descend.data.images.labelled import check_shares
from descend.data.reading import read_objects, read_records, show
from descend.data.streams.arrays import generator
from descend.data.streams.splits import describe_leaks, keep_together
from descend.errors import Mistake, nearest
from descend.ranges import Fraction, Length
from descend.text.inputs import Inputs, lengths_mask, pad_rows

MODULES = ("argparse", "calendar", "csv", "dataclasses", "difflib", "fractions", "heapq", "random", "shutil",
           "statistics", "textwrap", "zipfile")  # fmt: skip
WORDS = 32  # of a piece of source: whole lines up to this many

Sentence = tuple[int, list[str], list[str]]
"""Line number, words, tags."""


@dataclass(frozen=True)
class Tagged:
    """Sentences with tags as numbers, and the rows of the three parts."""

    words: list[list[str]]
    tags: list[list[int]]
    names: tuple[str, ...]
    ids: Tensor
    parts: dict[str, Tensor]
    facts: dict[str, str] = field(default_factory=dict)
    """Leaks between the parts, as a run says it."""

    def arrays(self, part: str, inputs: Inputs) -> dict[str, Tensor]:
        """x, mask, y, at (b, t), padded to the longest sentence of the part; ids are lines of the file."""
        rows = self.parts[part].tolist()
        found = tagged_arrays([self.words[i] for i in rows], [self.tags[i] for i in rows], inputs)
        return {**found, "ids": self.ids[rows]}


@dataclass(frozen=True)
class TaggedText:
    """Where the sentences come from, and how they are cut into tokens and parts."""

    path: str = ""
    """A .jsonl file, or a CoNLL file of words and tags; empty: source of the standard library."""
    vocab: Length = 1024
    """Tokens that BPE learns (a pre-trained model brings its own)."""
    valid: Fraction = 0.1
    """Share of the sentences used for validation."""
    test: Fraction = 0.1
    """Share of the sentences used for testing."""

    def read(self) -> Tagged:
        """Sentences, tags and parts."""
        check_shares(self.valid, self.test)
        sentences = list(read_sentences(Path(self.path)) if self.path else python_source())
        if len(sentences) < 10:
            raise Mistake(f"{show(self.path)}: {len(sentences)} sentences; a tagger needs 10 or more")
        names = tuple(sorted({tag for _, _, tags in sentences for tag in tags}))
        number = {name: i for i, name in enumerate(names)}
        n = len(sentences)
        order = torch.randperm(n, generator=generator(0, n))
        cuts = [max(1, round(n * self.valid)), max(2, round(n * (self.valid + self.test)))]
        pieces = [rows.sort().values for rows in order.tensor_split(cuts)]
        keys = [tuple(words) for _, words, _ in sentences]
        together = keep_together(keys, pieces) if self.path else pieces
        valid, test, train = together if all(map(len, together)) else pieces
        parts = {"train": train, "valid": valid, "test": test}
        return Tagged(
            [words for _, words, _ in sentences],
            [[number[tag] for tag in tags] for _, _, tags in sentences],
            names,
            torch.tensor([line for line, _, _ in sentences]),
            parts,
            describe_leaks(keys, parts),
        )


def read_sentences(path: Path) -> Iterator[Sentence]:
    """The sentences of a file."""
    if path.suffix in (".jsonl", ".json"):
        for number, values in read_objects(path):
            words, tags = values.get("tokens"), values.get("tags")
            if not (isinstance(words, list) and isinstance(tags, list) and len(words) == len(tags) > 0):
                raise Mistake(f'{show(path)}, line {number}: "tokens" and "tags" must be lists of the same length')
            if strange := next((w for w in (*words, *tags) if not isinstance(w, str | int | float)), None):
                raise Mistake(f"{show(path)}, line {number}: {strange!r} is not a word; correct the line")
            yield number, [str(w) for w in words], [str(t) for t in tags]
        return
    words, tags = [], []
    lines = read_records(path).split("\n")
    for number, line in enumerate([*lines, ""], start=1):
        columns = line.split()
        if columns and len(columns) < 2:
            raise Mistake(f"{show(path)}, line {number}: one column; a word and its tag are needed")
        if columns and columns[0] != "-DOCSTART-":
            words.append(columns[0])
            tags.append(columns[-1])
        elif words:
            yield number - len(words), words, tags
            words, tags = [], []


def encode_tagged(path: str, inputs: Inputs, names: Sequence[str]) -> dict[str, Tensor]:
    """Every sentence of a file, by the tags and the tokenizer of a trained model."""
    sentences, number = list(read_sentences(Path(path))), {name: i for i, name in enumerate(names)}
    if not sentences:
        raise Mistake(f"{show(path)} holds no sentence; give words and tags")
    for line, _, tags in sentences:
        if strange := next((tag for tag in tags if tag not in number), ""):
            raise Mistake(
                f"{show(path)}, line {line}: the model knows no tag {strange!r}.{nearest(strange, names)} "
                f"Tags: {', '.join(names)}"
            )
    found = tagged_arrays(
        [words for _, words, _ in sentences], [[number[t] for t in tags] for *_, tags in sentences], inputs
    )
    return {**found, "ids": torch.tensor([line for line, _, _ in sentences])}


def python_source() -> Iterator[Sentence]:
    """Pieces of the standard library's source, of whole lines."""
    place = 0
    for name in MODULES:
        spec = importlib.util.find_spec(name)
        source = Path(spec.origin).read_text(encoding="utf-8") if spec and spec.origin else ""
        words: list[str] = []
        tags: list[str] = []
        for line in source_lines(source):
            if words and len(words) + len(line) > WORDS:
                place += 1
                yield place, words, tags
                words, tags = [], []
            words, tags = words + [w for w, _ in line[:WORDS]], tags + [t for _, t in line[:WORDS]]


def source_lines(source: str) -> Iterator[list[tuple[str, str]]]:
    """The words and signs of each line, with their kinds."""
    lines = source.splitlines(keepends=True)
    kinds: list[list[str]] = [[""] * len(line) for line in lines]
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        kind = kind_of(token)
        (first, left), (last, right) = token.start, token.end
        for row in range(first, last + 1) if kind else ():
            begin, end = left if row == first else 0, right if row == last else len(lines[row - 1])
            kinds[row - 1][begin:end] = [kind] * (end - begin)
    for line, marks in zip(lines, kinds, strict=True):
        found = [(m.group(), marks[m.start()]) for m in re.finditer(r"\w+|[^\w\s]", line) if marks[m.start()]]
        if found:
            yield found


def kind_of(token: tokenize.TokenInfo) -> str:
    """COMMENT, KEYWORD, NAME, NUMBER, OP or STRING; nothing for line ends and indents."""
    name = tokenize.tok_name[token.type]
    if name == "NAME" and keyword.iskeyword(token.string):
        return "KEYWORD"
    if name.startswith("FSTRING"):
        return "STRING"
    return name if name in ("COMMENT", "NAME", "NUMBER", "OP", "STRING") else ""


def tagged_arrays(
    sentences: Sequence[Sequence[str]], tags: Sequence[Sequence[int]], inputs: Inputs
) -> dict[str, Tensor]:
    """x, mask, y and at (b, t) of words with tags: only the first token of a word counts (`at`)."""
    spelled = [[word if i == 0 else " " + word for i, word in enumerate(words)] for words in sentences]
    different = sorted({word for words in spelled for word in words})
    tokens_of = dict(zip(different, inputs.tokenizer.encode_many(different), strict=True))
    xs, ys, ats = [], [], []
    for words, numbers in zip(spelled, tags, strict=True):
        pieces = [tokens_of[word] for word in words]
        y = [tag for piece, tag in zip(pieces, numbers, strict=True) for _ in piece]
        at = [i == 0 for piece in pieces for i, _ in enumerate(piece)]
        tokens = inputs.join([token for piece in pieces for token in piece]).tokens
        room = len(tokens) - 2
        xs.append(tokens)
        ys.append([0, *y[:room], 0])
        ats.append([0, *map(int, at[:room]), 0])
    mask = lengths_mask([len(x) for x in xs])
    return {"x": pad_rows(xs, inputs.pad), "mask": mask, "y": pad_rows(ys, 0), "at": pad_rows(ats, 0).bool()}
