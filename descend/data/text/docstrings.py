"""Queries and the documents that answer them: docstrings of Python's own library, or the user's pairs.

    query      the summary of a docstring, its first paragraph         "Return a list of the words in the string."
    document   what follows it                                        "The optional argument sep gives .."

Nothing is imported: modules are parsed (one whose code has mistakes is passed over). Equal queries, and equal
documents, count once, and documents that begin alike stay in one part, so that no test document is a copy of a training
one.

Training pairs are few, so that an encoder may also match summaries with the code that they describe (names of the
function, of its arguments, and its first lines); what has a held-out summary is not among them.

    .tsv     query TAB document            .jsonl   {"query": "..", "document": ".."}

Systems: cross-and-bi-encoder
"""

from __future__ import annotations

import ast
import os
import sysconfig
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

import xxhash

from descend.data.reading import check_file, read_objects, read_rows, show
from descend.errors import Mistake
from descend.ranges import Fraction, Length

LEFT_OUT = ("site-packages", "dist-packages", "test", "tests", "__pycache__", "idle_test")
SHORTEST = (15, 40)  # characters of a query and of a document
PARTS = ("train", "valid", "test")
ALIKE = 8  # words with which copies of a document begin
CODE = 600  # characters of it


class Match(NamedTuple):
    """A query and the document that answers it."""

    query: str
    document: str
    code: str = ""
    """What the query describes."""

    @property
    def beginning(self) -> str:
        """Documents that share it stay together."""
        return " ".join(self.document.lower().split()[:ALIKE])


@dataclass(frozen=True)
class QueryDocuments:
    """Where queries and documents come from, and how they are cut into tokens and parts."""

    path: str = ""
    """A .tsv or .jsonl file of pairs; empty: docstrings of Python's library, summary -> body."""
    vocab: Length = 8000
    """Tokens that BPE learns (a pre-trained encoder brings its own)."""
    longest: Length = 96
    """Maximum tokens of a query or a document."""
    valid: Fraction = 0.15
    """Share of the pairs used for validation."""
    test: Fraction = 0.15
    """Share of the pairs used for testing."""
    also: Literal["", "code"] = "code"
    """Docstrings only: what summaries are matched with beside their bodies, in training."""

    def read(self) -> dict[str, list[Match]]:
        """The pairs of the three parts."""
        found = read_matches(Path(self.path)) if self.path else list(docstrings())
        if not 0 < self.valid + self.test < 1:
            raise Mistake(f"--data.valid {self.valid:g} and --data.test {self.test:g} leave nothing to train on")
        parts: dict[str, list[Match]] = {part: [] for part in PARTS}
        for match in found:
            u = xxhash.xxh3_64_intdigest(match.beginning.encode()) / 2**64
            part = "valid" if u < self.valid else "test" if u < self.valid + self.test else "train"
            parts[part].append(match)
        for part, matches in parts.items():
            if len(matches) < 2:
                raise Mistake(f"{show(self.path)}: {len(found)} pairs leave too few for {part}; give more pairs")
        return parts

    def more(self, parts: dict[str, list[Match]]) -> list[Match]:
        """Pairs of summary and code, none with a summary that is held out."""
        if self.path or not self.also:
            return []
        held_out = {match.query for part in ("valid", "test") for match in parts[part]}
        found = (Match(match.query, match.code) for match in described() if match.code)
        return [match for match in found if match.query not in held_out]


def read_matches(path: Path) -> list[Match]:
    """The pairs of a file."""
    check_file(path)
    kind = path.name.removesuffix(".gz").rpartition(".")[2]
    if kind not in ("tsv", "jsonl"):
        raise Mistake(f"{show(path)}: pairs of query and document are read from .tsv or .jsonl")
    found = list(read_tsv(path) if kind == "tsv" else read_jsonl(path))
    for line, match in found:
        if not match.query.strip() or not match.document.strip():
            raise Mistake(f"{show(path)}, line {line}: query or document is empty; fill it in or remove the line")
    return keep_once(match for _, match in found)


def read_tsv(path: Path) -> Iterator[tuple[int, Match]]:
    for line, fields in read_rows(path, "\t"):
        if len(fields) != 2:
            raise Mistake(f"{show(path)}, line {line}: {len(fields)} fields instead of 2; write query TAB document")
        yield line, Match(*fields)


def read_jsonl(path: Path) -> Iterator[tuple[int, Match]]:
    for line, record in read_objects(path):
        texts = record.get("query"), record.get("document")
        if not (isinstance(texts[0], str) and isinstance(texts[1], str)):
            raise Mistake(f'{show(path)}, line {line}: each record has the texts "query" and "document"')
        yield line, Match(texts[0], texts[1])


def docstrings() -> list[Match]:
    """The pairs of Python's library, in the order of its files."""
    return keep_once(match for match in described() if len(match.document) >= SHORTEST[1])


@cache
def described() -> tuple[Match, ...]:
    """Whatever in Python's library has a summary, in the order of its files."""
    root = Path(sysconfig.get_paths()["stdlib"])
    return tuple(match for file in list_modules(root) for match in split_docstrings(file))


def list_modules(root: Path) -> Iterator[Path]:
    """The modules below a folder, in the order of their names."""
    for folder, inside, names in os.walk(root):
        inside[:] = sorted(name for name in inside if name not in LEFT_OUT and not name.startswith("config-"))
        yield from (Path(folder) / name for name in sorted(names) if name.endswith(".py"))


def split_docstrings(file: Path) -> Iterator[Match]:
    """Summary, body and code of whatever in a module has a docstring."""
    try:
        text = file.read_text(encoding="utf-8")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (OSError, SyntaxError, ValueError):
        return
    lines = text.split("\n")
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            summary, _, body = (ast.get_docstring(node) or "").partition("\n\n")
            query = " ".join(summary.split())
            if len(query) >= SHORTEST[0]:
                yield Match(query, " ".join(body.split()), read_code(node, lines))


def read_code(node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef, lines: list[str]) -> str:
    """The name, the arguments and the first lines after the docstring."""
    if isinstance(node, ast.Module):
        return ""
    arguments = [] if isinstance(node, ast.ClassDef) else [argument.arg for argument in node.args.args]
    body = " ".join(" ".join(lines[node.body[0].end_lineno : node.end_lineno]).split())[:CODE]
    return " ".join([node.name, *arguments, body])


def keep_once(found: Iterator[Match]) -> list[Match]:
    """Without queries and documents that came before, so that every query has one right document."""
    queries: set[str] = set()
    documents: set[str] = set()
    kept = []
    for match in found:
        if match.query not in queries and match.document not in documents:
            kept.append(match)
        queries.add(match.query)
        documents.add(match.document)
    return kept
