"""The held-out test data: validation selects a checkpoint, the test data then judge it, once.

The scores are a line of metrics.jsonl that says of which checkpoint they are. The same checkpoint is not scored again;
another one adds another line, so that nobody can look at the test data often without its being seen.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, NamedTuple

from descend.contracts import Task
from descend.engine.evaluation import score_set
from descend.engine.hardware import move_batch, one_thread
from descend.engine.run import Run
from descend.errors import Mistake
from descend.kinds.recipe import Recipe
from descend.weights.checkpoints import step_of

EVENT = "test"


class Tested(NamedTuple):
    """Scores of the test data, none where there are no such data; and the line to log, where it is not yet there."""

    scores: dict[str, float]
    line: dict[str, Any]


def score_test(run: Run, recipe: Recipe, task: Task, checkpoint: Path) -> Tested:
    """The test scores of a checkpoint whose weights the task has: as they were logged, or scored now."""
    name = checkpoint.name
    logged = [line for line in run.lines() if line.get("event") == EVENT and line.get("checkpoint") == name]
    if logged and isinstance(logged[-1].get("scores"), dict):
        return Tested(logged[-1]["scores"], {})
    device = next(task.parameters()).device
    with one_thread():  # as the training data were read: sums over them round alike
        test = recipe.test()
    scores = score_set(task, (move_batch(batch, device) for batch in test))
    line = {"step": step_of(name) or 0, "event": EVENT, "checkpoint": name, "scores": scores} if scores else {}
    return Tested(scores, line)


def log_scores(run: Run, line: dict[str, Any]) -> None:
    """Into metrics.jsonl."""
    try:
        if line:
            run.log(line)
    finally:
        run.close()


def log_scores_if_possible(run: Run, line: dict[str, Any]) -> None:
    """A run that cannot be written to can still be judged."""
    try:
        log_scores(run, line)
    except (Mistake, OSError) as error:
        print(f"the test scores could not be written to the run: {error}", file=sys.stderr)
