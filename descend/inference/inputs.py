"""What a user names as inputs: image files, folders and patterns; texts and files of texts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from glob import glob
from pathlib import Path

from descend.data.images.files import SUFFIXES, list_image_files
from descend.errors import Mistake


def list_images(inputs: Sequence[str]) -> list[Path]:
    """Files, the images of folders, and patterns such as "photos/*.jpg", in the order given."""
    found: list[Path] = []
    for given in inputs:
        path = Path(given)
        if path.is_dir():
            inside, _ = list_image_files(path)
            if not inside:
                raise Mistake(f"{path} holds no images ({', '.join(sorted(SUFFIXES))})")
            found += inside
        elif path.exists():
            found.append(path)
        else:
            matches = sorted(Path(name) for name in glob(given, recursive=True))
            if not matches:
                raise Mistake(f"{given} does not exist; give image files, folders or a pattern in quotes")
            found += [match for match in matches if match.is_file()]
    return found


def read_texts(inputs: Sequence[str]) -> list[str]:
    """A .txt file has a text on each line, a .jsonl file a record with "text"; anything else is a text itself."""
    found: list[str] = []
    for given in inputs:
        path = Path(given)
        if path.suffix not in (".txt", ".jsonl"):
            found.append(given)
            continue
        if not path.is_file():
            raise Mistake(f"{given} does not exist; give a text, a .txt or a .jsonl file")
        lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
        found += lines if path.suffix == ".txt" else [read_record(line, path, n) for n, line in enumerate(lines, 1)]
    if not found:
        raise Mistake(f"{inputs[0]} holds no text")
    return found


def read_record(line: str, path: Path, number: int) -> str:
    """The text of a JSONL record."""
    try:
        value = json.loads(line)["text"]
    except (json.JSONDecodeError, KeyError, TypeError):
        raise Mistake(f'{path}, line {number}: no record with "text"; write {{"text": "…"}}') from None
    return str(value)
