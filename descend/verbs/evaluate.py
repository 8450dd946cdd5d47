"""descend evaluate: the scores of a run's best checkpoint, on the validation data and on the held-out test data."""

from __future__ import annotations

import json as json_module
from pathlib import Path
from typing import Any

import torch

from descend.engine.evaluation import score_set
from descend.engine.run import Run
from descend.kinds.saved import from_json
from descend.models import load
from descend.weights.checkpoints import resolve_checkpoint


def evaluate(run: str | Path, checkpoint: str | int = "best") -> dict[str, Any]:
    """Score a trained run on its validation data and on the held-out test data.

    Args:
        run: the run's folder.
        checkpoint: best, last or a step.

    Returns:
        {"checkpoint", "valid": scores, "test": scores}; `test` is left out where the data has none.
    """
    found = Run.open(run)
    saved = found.recipe
    recipe = from_json(saved["values"], str(found.folder / "recipe.json"))
    torch.set_num_threads(saved["environment"]["threads"])
    parts, folder = recipe.build(), resolve_checkpoint(found.folder, checkpoint)
    parts.model.load_state_dict(load(folder).state_dict())
    scores: dict[str, Any] = {"checkpoint": folder.name}
    with torch.no_grad():
        scores["valid"] = score_set(parts.task, parts.valid)
        test = score_set(parts.task, recipe.test())
        if test:
            scores["test"] = test
    return scores


def command(run: str, /, *, checkpoint: str = "best", json: bool = False) -> None:
    """Score a run's best checkpoint on its validation and test data.

    Args:
        run: the run's folder.
        checkpoint: best, last or a step.
        json: print JSON.

    Examples:
        descend evaluate runs/demo
        descend evaluate runs/demo --checkpoint last --json
    """
    scores = evaluate(run, checkpoint)
    if json:
        print(json_module.dumps(scores, indent=2))
        return
    print(f"checkpoint {scores.pop('checkpoint')}")
    for split, values in scores.items():
        for name, value in values.items():
            print(f"{split:6} {name:14} {value:.4f}")
