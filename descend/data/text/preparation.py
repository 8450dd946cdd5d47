"""A corpus made ready to be learned from: what is left out, in which order, and a report of why.

    votes            records with fewer than three votes (WebText: links that three readers liked; DLN)
    lines            not the document: only its lines that are no sentences; one without any left is left out
    rules            `data.text.quality`
    contamination    documents that hold a run of 13 words of an evaluation set (`metrics.leakage`)
    equal, near      copies of a document that was kept (`data.text.copies`)

Each document is left out for the first of these reasons that it gives. Nothing here is drawn by chance but the hash
functions, which have a fixed seed: the same files give the same corpus.

    corpus.jsonl     the records that are left, with all their fields
    left_out.tsv     where each of the others stood, the reason, and a detail: the copy's original, the words in common
    report.json      documents and characters in and out, counts by reason, and what was asked for

Systems: corpus-preparation
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from descend.data.reading import read_objects, show
from descend.data.text.copies import EqualCopies, NearCopies
from descend.data.text.documents import blocks, holds_records, objects, passages, sources
from descend.data.text.quality import RULES, keep_lines
from descend.errors import Mistake, nearest
from descend.metrics.leakage import LeakFinder

CORPUS, LEFT_OUT, REPORT = "corpus.jsonl", "left_out.tsv", "report.json"


class Document(NamedTuple):
    """A text, where it stood, and the record that it came with."""

    where: str
    text: str
    record: dict[str, Any]


class Reason(NamedTuple):
    """Why a document is left out."""

    name: str
    detail: str = ""


@dataclass(frozen=True)
class Wishes:
    """What is left out of a corpus."""

    rules: tuple[str, ...] = ("broken", "repeated", "symbols")
    lines: bool = False
    """Keep the lines that are sentences, and of a document only those."""
    votes: int = 0
    """Fewest votes of a record; 0: all."""
    votes_field: str = "votes"
    near: float = 0.8
    """Least Jaccard similarity of a near-duplicate; 0: none is looked for."""
    against: str = ""
    """An evaluation set: a text (a paragraph is an item), or .jsonl (a record is one)."""
    words: int = 13
    """Words in a row that contaminate."""
    paragraphs: bool = False
    """A paragraph of a plain text is a document; else the file."""

    def check(self) -> None:
        for name in self.rules:
            if name not in RULES:
                raise Mistake(f"--rules {name}: choose {', '.join(RULES)}.{nearest(name, RULES)}")
        if not 0 <= self.near <= 1:
            raise Mistake(f"--near {self.near:g}: a similarity is between 0 and 1")
        if self.votes < 0 or self.words < 1:
            raise Mistake(f"--votes {self.votes}, --words {self.words}: at least 0 votes and 1 word")


@dataclass
class Report:
    """What came in, what went out, and why."""

    documents: int = 0
    kept: int = 0
    characters: int = 0
    kept_characters: int = 0
    left_out: Counter[str] = field(default_factory=Counter)

    def as_json(self, wishes: Wishes) -> dict[str, Any]:
        return {**asdict(self), "left_out": dict(sorted(self.left_out.items())), "asked_for": asdict(wishes)}


def read_documents(path: str | Path, paragraphs: bool = False) -> Iterator[Document]:
    """The documents of a file or folder, one after the other."""
    for file in sources(path):
        if holds_records(file):
            for where, record in objects(file, blocks(file)):
                yield Document(where, record["text"], record)
            continue
        text = "".join(piece.text for piece in passages(file, blocks(file)))
        parts = split_paragraphs(text) if paragraphs else [(1, text)]
        for line, part in parts:
            where = f"{show(file)}, line {line}" if paragraphs else show(file)
            yield Document(where, part, {"source": where})


def split_paragraphs(text: str) -> Iterator[tuple[int, str]]:
    """Line and text of what stands between empty lines."""
    found: list[str] = []
    lines = text.split("\n")
    for number, line in enumerate([*lines, ""], 1):
        if line.strip():
            found.append(line)
        elif found:
            yield number - len(found), "\n".join(found)
            found = []


def read_items(path: str) -> list[str]:
    """The items of an evaluation set: all texts of a record, or a paragraph."""
    found = []
    for file in sources(path):
        if holds_records(file):
            found += [" ".join(texts_of(record)) for _, record in read_objects(file)]
        else:
            text = "".join(piece.text for piece in passages(file, blocks(file)))
            found += [part for _, part in split_paragraphs(text)]
    if not found:
        raise Mistake(f"--against {show(path)} is empty; give the evaluation set")
    return found


def texts_of(value: Any) -> Iterator[str]:
    """The texts in a record, at any depth."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for part in value.values() if isinstance(value, dict) else value:
            yield from texts_of(part)


class Preparation:
    """Looks at one document after the other; keeps what was seen of those that stay."""

    def __init__(self, wishes: Wishes):
        wishes.check()
        self.wishes = wishes
        self.leaks = LeakFinder(read_items(wishes.against), wishes.words) if wishes.against else None
        self.equal = EqualCopies()
        self.near = NearCopies(wishes.near) if wishes.near else None
        self.report = Report()

    def look(self, document: Document) -> tuple[str, Reason | None]:
        """The text to keep, or the reason to leave the document out; both are counted."""
        text = keep_lines(document.text) if self.wishes.lines else document.text
        reason = self.judge(document, text)
        self.report.documents += 1
        self.report.characters += len(document.text)
        if reason is None:
            self.report.kept += 1
            self.report.kept_characters += len(text)
        else:
            self.report.left_out[reason.name] += 1
        return text, reason

    def judge(self, document: Document, text: str) -> Reason | None:
        """The first reason to leave it out."""
        if self.wishes.votes and (votes := self.count_votes(document)) < self.wishes.votes:
            return Reason("votes", f"{votes:g}")
        if not text.strip():
            return Reason("lines" if document.text.strip() else "empty")
        for name in self.wishes.rules:
            if RULES[name](text):
                return Reason(name)
        if self.leaks and (found := self.leaks.read(text)):
            return Reason("contamination", " ".join(min(found)))
        if original := self.equal.find(text, document.where):
            return Reason("equal", original)
        original, similarity = self.near.find(text, document.where) if self.near else ("", 0.0)
        return Reason("near", f"{original} ({similarity:.2f})") if original else None

    def count_votes(self, document: Document) -> float:
        votes = document.record.get(self.wishes.votes_field)
        if not isinstance(votes, int | float) or isinstance(votes, bool):
            raise Mistake(
                f"{document.where}: {self.wishes.votes_field!r} is no number of votes; "
                f"correct the record, or say --votes-field"
            )
        return votes


def prepare_corpus(source: str | Path, folder: Path, wishes: Wishes) -> Report:
    """Write corpus, list and report into a folder that is there."""
    work = Preparation(wishes)
    with (folder / CORPUS).open("w", encoding="utf-8") as kept, (folder / LEFT_OUT).open("w", encoding="utf-8") as out:
        out.write("where\treason\tdetail\n")
        for document in read_documents(source, wishes.paragraphs):
            text, reason = work.look(document)
            if reason is None:
                kept.write(json.dumps({**document.record, "text": text}, ensure_ascii=False) + "\n")
            else:
                out.write("\t".join(part.replace("\t", " ") for part in (document.where, *reason)) + "\n")
    (folder / REPORT).write_text(json.dumps(work.report.as_json(wishes), indent=2) + "\n", encoding="utf-8")
    return work.report
