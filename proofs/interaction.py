"""How much of an environment a policy has needed: the steps that were played until validation first reached a bar."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def count_steps(folder: Path, score: str, bar: float) -> int | None:
    """Environment steps of a run before the first validation score of at least the bar; none if it never was."""
    values = json.loads((folder / "recipe.json").read_text(encoding="utf-8"))["values"]
    played: float = 0
    for line in map(json.loads, (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()):
        if "environment_steps" in line:
            played = line["environment_steps"]
        if line.get("valid", {}).get(score, float("-inf")) >= bar:
            return int(played or line["step"] * count_each(values) + values.get("explore", {}).get("warmup", 0))
    return None


def count_each(values: dict[str, Any]) -> int:
    """Environment steps in a training step of a recipe: of all copies, once or along a rollout."""
    data = values["data"]
    copies: int = data.get("copies", values["loop"]["batch"])
    return copies * int(data.get("length", 1))
