"""Labelled texts for a trained classifier: the columns that its run took, and the classes that it knows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from descend.data.text.table import TextRecords, Wanted, read_text_table
from descend.errors import Mistake, nearest
from descend.files import read_json


def read_run_columns(folder: Path) -> Wanted:
    """The columns of text and label that the run of a checkpoint was trained on, as it told them; none where the folder
    is no checkpoint of a run."""
    path = folder.resolve().parent.parent / "recipe.json"
    facts = read_json(path).get("facts") if path.is_file() else {}
    if not isinstance(facts, dict):
        return Wanted()
    said = [str(facts.get(f"{role} column", "")) for role in ("text", "label")]
    return Wanted(*(name.removesuffix(" (there is no header)").removeprefix("column ") for name in said))


def read_unseen_texts(path: str, folder: Path, names: Sequence[str]) -> tuple[TextRecords, Tensor]:
    """Every record of a file, and the numbers of their classes."""
    records = read_text_table(Path(path), read_run_columns(folder))
    number = {name: k for k, name in enumerate(names)}
    for line, label in zip(records.lines, records.labels, strict=True):
        if label not in number:
            raise Mistake(
                f"{path}, line {line}: the model knows no label {label!r}.{nearest(label, names)} "
                f"Labels: {', '.join(names)}"
            )
    return records, torch.tensor([number[label] for label in records.labels])
