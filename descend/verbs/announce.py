"""What a run is told about when it starts: its data, what was left out of them, the batch, and the machine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from descend.engine.hardware import name_device

COUNTED = ("training", "train", "validation", "valid", "test")
TOLD = {"in training too": "leak", "left out": "left out", "not deterministic": "environment", "batch": "batch"}
"""Facts that are told with a line of their own, where there are any, and the word before each."""


def announce(facts: Mapping[str, Any], where: torch.device, threads: int, precision: str) -> list[str]:
    """The lines that a run begins with."""
    said = [f"{word}: {facts[name]}" for name, word in TOLD.items() if facts.get(name)]
    work = f"{threads} thread{'s' if threads > 1 else ''}, " if where.type == "cpu" else ""
    return [*describe_data(facts), *said, f"device: {name_device(where)}, {work}{precision}"]


def describe_data(facts: Mapping[str, Any]) -> list[str]:
    """The data with the number of records in each part, and of classes."""
    if "data" not in facts:
        return []
    counts = [f"{facts[name]:,} {name}" for name in facts if name.split()[0] in COUNTED and type(facts[name]) is int]
    classes = facts.get("classes", facts.get("labels"))
    if isinstance(classes, str):  # their names
        classes = classes.count(", ") + 1
    told = [f"{classes} classes"] if isinstance(classes, int) else [facts[n] for n in ("predicts",) if n in facts]
    return [f"data: {'; '.join([str(facts['data']), *counts, *map(str, told)])}"]
