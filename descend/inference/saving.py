"""Answers as a file: .csv or .jsonl, the columns of the input first. After a crash it is there whole, or not at all."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from descend.errors import Mistake
from descend.files import write_text
from descend.inference.answers import Answered

KINDS = (".csv", ".tsv", ".jsonl")


def check_out(path: Path, replace: bool, kinds: Sequence[str] = KINDS) -> None:
    """Refuse a name that cannot be written, before anything is computed."""
    if path.suffix not in kinds:
        raise Mistake(f"--out {path}: the file's name ends in {', '.join(kinds[:-1])} or {kinds[-1]}")
    if not path.parent.is_dir():
        raise Mistake(f"--out {path}: the folder {path.parent} does not exist")
    if path.is_dir():
        raise Mistake(f"--out {path} is a folder; give the name of a file")
    if path.exists() and not replace:
        raise Mistake(f"--out {path} exists; give --replace to write it anew, or another name")


def write_answers(path: Path, answers: Sequence[Answered]) -> None:
    """One line for each answer: the record's own columns, the prediction and its probability."""
    rows = [row for answer in answers for row in answer.as_rows()]
    write_text(path, format_jsonl(rows) if path.suffix == ".jsonl" else format_csv(rows, path.suffix))


def format_jsonl(rows: Sequence[dict[str, Any]]) -> str:
    """One object on each line."""
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def format_csv(rows: Sequence[dict[str, Any]], kind: str = ".csv") -> str:
    """A header and the rows; a column that a row does not have is empty in it."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    page = io.StringIO(newline="")
    writer = csv.DictWriter(page, names, lineterminator="\n", delimiter="\t" if kind == ".tsv" else ",", restval="")
    writer.writeheader()
    writer.writerows(rows)
    return page.getvalue()
