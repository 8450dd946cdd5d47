"""A run folder as the engine writes it, made without training."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any


def make_run(
    folder: Path, steps: int = 200, done: int | None = None, event: str = "finished", **loop: Any
) -> list[dict[str, Any]]:
    """Write recipe.json and metrics.jsonl of a run that took `done` of its `steps`; return the metrics."""
    folder.mkdir(parents=True)
    recipe = {
        "name": "gpt2-pydoc",
        "about": "a <small> model",
        "values": {
            "class": "descend.kinds.language:LanguageRecipe",
            "model": {"class": "descend.models.gpt2:GPT2Config", "width": 32, "dropout": 0.0},
            "optim": {"class": "descend.optim.rules:AdamW", "lr": 0.003},
            "loop": {"steps": steps, "watch": "min loss", **loop},
        },
        "environment": {"python": "3.11.7", "threads": 2},
        "facts": {"parameters": 1_089_536, "unit": "tokens"},
    }
    (folder / "recipe.json").write_text(json.dumps(recipe), encoding="utf-8")
    lines: list[dict[str, Any]] = []
    for step in range(1, (steps if done is None else done) + 1):
        loss = 2 + 5 * math.exp(-step / 40)
        lines.append(
            {"step": step, "time": 0.1 * step, "loss": loss, "lr": 0.003, "rate": 30e3 + step, "grad_norm": 1 / step}
        )
        if step % 50 == 0:
            # Best at step 150: afterwards the model overfits.
            valid = {"loss": loss + 0.1 + 0.5 * (step > 150), "accuracy": step / 1000}
            lines.append({"step": step, "time": 0.1 * step, "valid": valid})
    if event:
        lines.append({"step": lines[-1]["step"], "time": lines[-1]["time"], "event": event})
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return lines
