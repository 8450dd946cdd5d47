"""Passages of documents, each with the file and the lines that it comes from: what is searched and cited.

    words w_1 .. w_T of a document;  passages w_(s_1+1..s_2), w_(s_2+1..s_3), ..     every word in one of them, in order
    least ≤ s_{i+1} − s_i ≤ most                                                    but for the last one, maybe short
    s_{i+1} = the last paragraph's end in that range, else the last line's end, else s_i + most

DLN-B.84 says 200 to 500 words. An encoder reads a few hundred tokens, so passages end at 300 unless told otherwise.

    .txt .md .rst .py    one document        .jsonl    a document a line, {"text": ".."}; cited by that line

Systems: rag
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from descend.data.reading import check_file, is_folder, list_files, read_objects, read_records, show
from descend.errors import Mistake

ENDINGS = (".txt", ".md", ".rst", ".py", ".jsonl")
LEAST, MOST = 200, 300  # words
WORD = re.compile(r"\S+")


@dataclass(frozen=True)
class Passage:
    """A piece of a document."""

    text: str
    file: str
    """Below the folder that was read."""
    line: int
    """Its first line."""
    last: int
    """Its last line."""

    @property
    def source(self) -> str:
        """How it is cited: file:line."""
        return f"{self.file}:{self.line}"


def cut_words(text: str, least: int = LEAST, most: int = MOST) -> list[tuple[int, int]]:
    """Where passages begin and end in a text, in characters."""
    if not 1 <= least <= most:
        raise Mistake(f"passages of {least} to {most} words: give --least 1 or more, and --most no less than that")
    words = [match.span() for match in WORD.finditer(text)]
    breaks = [text.count("\n", end, start) for (_, end), (start, _) in pairwise(words)]
    found, s = [], 0
    while s < len(words):
        stop = len(words) if len(words) - s <= most else choose_end(breaks, s + least, s + most)
        found.append((words[s][0], words[stop - 1][1]))
        s = stop
    return found


def choose_end(breaks: Sequence[int], first: int, last: int) -> int:
    """After how many words to cut, from first to last: behind a paragraph, else behind a line, else as late as may be.
    breaks[i] counts the line ends after word i."""
    for lines in (2, 1):
        for end in range(last, first - 1, -1):
            if breaks[end - 1] >= lines:
                return end
    return last


def cut_document(text: str, file: str, first: int = 1, least: int = LEAST, most: int = MOST) -> Iterator[Passage]:
    """The passages of a text that begins at line `first` of its file."""
    line, here = first, 0
    for start, stop in cut_words(text, least, most):
        line += text.count("\n", here, start)
        last = line + text.count("\n", start, stop)
        yield Passage(text[start:stop], file, line, last)
        line, here = last, stop


def cut_file(path: Path, name: str, least: int = LEAST, most: int = MOST) -> list[Passage]:
    """The passages of a file, cited under this name."""
    if path.suffix.lower() != ".jsonl":
        return list(cut_document(read_records(path), name, 1, least, most))
    found = []
    for number, record in read_objects(path):
        if not isinstance(record.get("text"), str):
            where = f"{show(path)}, line {number}"
            raise Mistake(f'{where}: the record has no "text"; each line is {{"text": "..."}}')
        pieces = cut_document(record["text"], name, number, least, most)
        found += [Passage(piece.text, name, number, number) for piece in pieces]
    return found


def list_documents(folder: str | Path) -> dict[str, Path]:
    """The documents below a folder, by name; a file is itself."""
    root = Path(folder)
    if not is_folder(root):
        check_file(root)
        if root.suffix.lower() not in ENDINGS:
            raise Mistake(f"{show(root)} is no document; it ends in {', '.join(ENDINGS)}")
        return {root.name: root}
    files = [file for file in list_files(root, ENDINGS) if file.suffix.lower() in ENDINGS]
    if not files:
        raise Mistake(f"{show(root)} holds no document to index; it needs files that end in {', '.join(ENDINGS)}")
    return {show(file.relative_to(root)): file for file in files}
