"""descend evaluate: the scores of a run's best checkpoint, on its validation and test data or on new labelled data."""

from __future__ import annotations

import json as json_module
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from descend.engine import hardware
from descend.engine.evaluation import score_set
from descend.engine.run import Run
from descend.kinds.saved import read_saved
from descend.models import load
from descend.own_code import use_code
from descend.report.evaluation import check_page, write_evaluation
from descend.report.showing import build_parts, take_weights
from descend.verbs.held_out import log_scores_if_possible, score_test
from descend.weights.checkpoints import resolve_checkpoint


@dataclass(frozen=True)
class NewData:
    """Labelled data that the run was not trained on."""

    path: str = ""
    """A file or folder in the format of the run's own data; the whole of it is one test set."""


NO_DATA = NewData()


def evaluate(
    run: str | Path, checkpoint: str | int = "best", data: str | Path = "", html: str | Path = ""
) -> dict[str, Any]:
    """Score a trained run on its validation data and on the held-out test data, or on new labelled data.

    Args:
        run: the run's folder.
        checkpoint: best, last or a step.
        data: new labelled data in the format of the run's own, read with its columns, tokenizer and classes.
        html: a page to write, with what there is to look at: scores of every class, curves, errors.

    Returns:
        {"checkpoint", "valid": scores, "test": scores}; `test` is left out where the data has none. Of new data
        {"checkpoint", "data", "new": scores}.
    """
    found = Run.open(run)
    saved = read_saved(found.recipe, found.folder / "recipe.json")
    recipe, folder = saved.recipe, resolve_checkpoint(found.folder, checkpoint)
    scores: dict[str, Any] = {"checkpoint": folder.name}
    if str(html):
        check_page(Path(html))
    if str(data):
        with hardware.one_thread():
            judged = recipe.judge(str(data), load(folder), folder)
        torch.set_num_threads(saved.threads)
        scores |= {"data": str(data), "new": score_set(judged.task, judged.batches)}
        if str(html):
            write_evaluation(Path(html), f"{found.folder.name} on {data}", scores["new"], judged.exhibits)
        return scores
    parts = build_parts(recipe)
    take_weights(parts, folder)
    torch.set_num_threads(saved.threads)
    scores["valid"] = score_set(parts.task, parts.valid)
    tested = score_test(found, recipe, parts.task, folder)
    log_scores_if_possible(found, tested.line)
    if tested.scores:
        scores["test"] = tested.scores
    if str(html):
        write_evaluation(Path(html), f"{found.folder.name}, validation data", scores["valid"], parts.exhibits)
    return scores


def command(
    run: str,
    /,
    *,
    checkpoint: str = "best",
    code: str = "",
    data: NewData = NO_DATA,
    html: str = "",
    json: bool = False,
) -> None:
    """Score a run's best checkpoint on its validation and test data, or on new labelled data.

    Args:
        run: the run's folder.
        checkpoint: best, last or a step.
        code: the file of a recipe or model of your own, where it is not found by its name.
        data: new labelled data.
        html: a page to write, with what there is to look at: scores of every class, curves, errors.
        json: print JSON.

    Examples:
        descend evaluate runs/demo
        descend evaluate runs/demo --data.path new.csv
        descend evaluate runs/demo --checkpoint last --json
        descend evaluate runs/cells --data.path new/ --html cells.html
    """
    use_code(code)
    scores = evaluate(run, checkpoint, data.path, html)
    if json:
        print(json_module.dumps(scores, indent=2))
        return
    print(f"checkpoint {scores.pop('checkpoint')}")
    scores.pop("data", None)
    for split, values in scores.items():
        for name, value in values.items():
            print(f"{split:6} {name:14} {value:.4f}")
    if html:
        print(f"written {html}")
