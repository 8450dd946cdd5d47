"""descend predict: what a trained model says of your images, texts or tables."""

from __future__ import annotations

import csv
import json as json_module
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from descend.errors import Mistake
from descend.inference import open_run
from descend.inference.answers import Answer
from descend.inference.inputs import list_images
from descend.inference.player import Player
from descend.inference.sampler import Sampler
from descend.inference.table_predictor import TablePredictor
from descend.inference.text_classifier import SentenceClassifier
from descend.inference.writer import Writer

BAR = 30  # characters of a bar at 100%
SIDES = ("left", "top", "right", "bottom")  # of a box
OTHER = {Writer: "generate", Player: "evaluate", Sampler: "sample"}  # the verb for what classifies nothing


def predict(
    run: str | Path,
    *inputs: str | Path,
    top: int = 5,
    heat: str | Path = "",
    labels: Sequence[str] = (),
    checkpoint: str | int = "best",
) -> list[dict[str, Any]]:
    """Ask a trained model about images, texts or tables.

    Args:
        run: a run's folder, or a model folder.
        inputs: image files, folders or patterns; or texts, .txt or .jsonl files; or .csv files.
        top: how many classes to return, the most likely first.
        heat: a PNG to write: each image beside where the model looked, or with its mask or box laid over it.
        labels: for a CLIP: the classes to choose from.
        checkpoint: best, last or a step.

    Returns:
        {"input", "answers": [{"label", "probability"}, ..]} of each image or text, with "box" (x0, y0, x1, y1 as shares
        of the image) where the model finds one; of a table {"line", target, "probability"} of each record.
    """
    if top < 1:
        raise Mistake(f"--top {top}: at least 1")
    given, answerer = [str(i) for i in inputs], open_run(run, checkpoint, labels)
    if isinstance(answerer, Writer | Player | Sampler):
        verb = OTHER[type(answerer)]
        raise Mistake(f"{run} holds a {answerer.trained.kind}, which is not a classifier; use: descend {verb} {run}")
    if not given:
        raise Mistake(f"{run} takes {answerer.takes}; name at least one: descend predict {run} …")
    if heat and answerer.takes != "images":
        raise Mistake(f"--heat is for images, but {run} takes {answerer.takes}")
    if isinstance(answerer, TablePredictor):
        return answerer.predict(given)
    if isinstance(answerer, SentenceClassifier) or not heat:
        return [answer.as_json(top) for answer in answerer.predict(given)]
    from descend.report.predictions import check_png, draw_predictions, write_png

    check_png(Path(heat), "--heat")
    found: list[Answer] = answerer.predict(given)
    write_png(Path(heat), draw_predictions(answerer, list_images(given)), "--heat")
    return [answer.as_json(top) for answer in found]


def show(found: list[dict[str, Any]]) -> None:
    """A block for each input: its classes with bars. Colours only in a terminal, and not with NO_COLOR."""
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, soft_wrap=True)
    wide = max(len(a["label"]) for row in found for a in row["answers"])
    for row in found:
        box = "  ".join(f"{side} {share:.0%}" for side, share in zip(SIDES, row.get("box", ()), strict=False))
        console.print(Text(row["input"], style="bold").append(f"  {box}" * bool(box), style="not bold"))
        for place, answer in enumerate(row["answers"]):
            p = answer["probability"]
            line = Text(f"  {answer['label']:<{wide}}  ")
            line.append(f"{'█' * round(BAR * p):<{BAR}}", style="green" if place == 0 else "blue")
            console.print(line.append(f" {p:6.1%}"))


def show_table(found: list[dict[str, Any]]) -> None:
    """The records as CSV."""
    writer = csv.DictWriter(sys.stdout, list(found[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(found)


def command(
    run: str,
    inputs: tuple[str, ...],
    /,
    *,
    top: int = 5,
    heat: str = "",
    labels: str = "",
    checkpoint: str = "best",
    json: bool = False,
) -> None:
    """Ask a trained model about images, texts or a table.

    Args:
        run: a run's folder, or a model folder.
        inputs: image files, folders or patterns; or texts, .txt or .jsonl files; or a .csv file.
        top: how many classes to show, the most likely first.
        heat: a PNG to write: where the model looked, the mask of a segmentation model, or the box of a localiser.
        labels: for a CLIP: the classes to choose from, separated by commas.
        checkpoint: best, last or a step.
        json: print JSON.

    Examples:
        descend predict runs/demo photo.jpg
        descend predict runs/demo photos/ "more/*.png" --top 3 --heat heat.png
        descend predict runs/clip photo.jpg --labels "a red circle, a blue square"
        descend predict runs/opinions "a moving film" --json
        descend predict runs/table new.csv > answers.csv
    """
    named = [name.strip() for name in labels.split(",") if name.strip()]
    found = predict(run, *inputs, top=top, heat=heat, labels=named, checkpoint=checkpoint)
    if json:
        print(json_module.dumps(found, indent=2, ensure_ascii=False))
    elif found and "answers" in found[0]:
        show(found)
        if heat:
            print(f"written {heat}")
    elif found:
        show_table(found)
