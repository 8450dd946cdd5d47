"""descend prepare: a corpus without copies, broken pages and what the exam asks, and a report of what was left out."""

from __future__ import annotations

import json as json_module
import os
import shutil
from pathlib import Path

from descend.data.text.preparation import CORPUS, LEFT_OUT, Report, Wishes, prepare_corpus
from descend.errors import Mistake


def prepare(
    source: str | Path,
    out: str | Path,
    rules: tuple[str, ...] = Wishes.rules,
    lines: bool = False,
    votes: int = 0,
    votes_field: str = "votes",
    near: float = 0.8,
    against: str | Path = "",
    words: int = 13,
    paragraphs: bool = False,
) -> Report:
    """Write the documents that a language model should read, and say which were left out and why.

    Args:
        source: a text, a .jsonl file with "text", either as .gz, or a folder of them.
        out: the folder to write; it must not exist, or be empty.
        rules: which rules of quality hold: broken, repeated, symbols, word-length, few-sentences, braces, placeholder.
        lines: keep only lines of 5 words or more that end like a sentence.
        votes: fewest votes of a record; 0: all records.
        votes_field: the field with the votes.
        near: least Jaccard similarity of a near-duplicate; 0: keep them.
        against: an evaluation set; documents that hold words of it are left out.
        words: how many words in a row make such a document.
        paragraphs: a paragraph of a plain text is a document; else the file.
    """
    if not str(out):
        raise Mistake(f"say where the corpus goes: descend prepare {source} --out FOLDER")
    folder = Path(out)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise Mistake(f"{folder} exists and is not empty; give the name of a new folder")
    wishes = Wishes(tuple(rules), lines, votes, votes_field, near, str(against), words, paragraphs)
    aside = folder.with_name(f".{folder.name}.{os.getpid()}")
    try:
        aside.mkdir(parents=True)
        report = prepare_corpus(source, aside, wishes)
        if folder.exists():
            folder.rmdir()
        os.replace(aside, folder)
    except BaseException:
        shutil.rmtree(aside, ignore_errors=True)
        raise
    return report


def command(
    source: str,
    /,
    *,
    out: str = "",
    rules: tuple[str, ...] = Wishes.rules,
    lines: bool = False,
    votes: int = 0,
    votes_field: str = "votes",
    near: float = 0.8,
    against: str = "",
    words: int = 13,
    paragraphs: bool = False,
    json: bool = False,
) -> None:
    """Leave out of a corpus what a language model should not read: copies, broken pages, parts of an evaluation set.

    Args:
        source: a text, a .jsonl file with "text", either as .gz, or a folder of them.
        out: the folder to write; it must not exist, or be empty.
        rules: which rules of quality hold: broken, repeated, symbols, word-length, few-sentences, braces, placeholder.
        lines: keep only lines of 5 words or more that end like a sentence.
        votes: fewest votes of a record; 0: all records.
        votes_field: the field with the votes.
        near: least Jaccard similarity of a near-duplicate; 0: keep them.
        against: an evaluation set; documents that hold words of it are left out.
        words: how many words in a row make such a document.
        paragraphs: a paragraph of a plain text is a document; else the file.
        json: print the report as JSON.

    Examples:
        descend prepare pages.jsonl --out clean --votes 3
        descend prepare texts/ --out clean --rules broken few-sentences braces --against exam.jsonl
        descend train gpt2-pydoc --data.path clean/corpus.jsonl
    """
    report = prepare(source, out, rules, lines, votes, votes_field, near, against, words, paragraphs)
    if json:
        print(json_module.dumps({"documents": report.documents, "kept": report.kept, **report.left_out}))
        return
    share = report.kept_characters / report.characters if report.characters else 0.0
    print(f"{report.documents:,} documents: {report.kept:,} kept, {share:.1%} of the characters -> {out}/{CORPUS}")
    for name, count in report.left_out.most_common():
        print(f"left out: {count:,} {name}")
    if report.left_out:
        print(f"each of them, and why: {out}/{LEFT_OUT}")
