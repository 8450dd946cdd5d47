"""descend predict: what a trained model says of your pictures, texts or tables."""

from __future__ import annotations

import csv
import json as json_module
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from descend.errors import Mistake
from descend.inference.answers import (
    Answer,
    Seen,
    Trained,
    class_names,
    picture_answers,
    picture_paths,
    see,
    text_answers,
    texts_of,
)
from descend.kinds import table

BAR = 30  # characters of a bar at 100%
SIDES = ("left", "top", "right", "bottom")  # of a box
LEAST = 160  # pixels of a picture's side in the heat map's file


def predict(
    run: str | Path, *inputs: str | Path, top: int = 5, heat: str | Path = "", labels: Sequence[str] = ()
) -> list[dict[str, Any]]:
    """{"input", "answers": [{"label", "probability"}, ..]} of each picture or text; of a table a dict for each record.

    A localiser adds "box": x0, y0, x1, y1 as shares of the picture. `heat` is a PNG to write: each picture beside where
    the model looked, or with its mask or box laid over it. `labels` are the classes that a CLIP is asked about.
    """
    if top < 1:
        raise Mistake(f"--top {top}: at least 1")
    given, trained = [str(i) for i in inputs], Trained.open(run, labels)
    if not given:
        raise Mistake(f"{run} takes {trained.takes}; name at least one: descend predict {run} …")
    if heat and trained.takes != "pictures":
        raise Mistake(f"--heat is for pictures, but {run} takes {trained.takes}")
    if trained.takes == "table":
        return [row for path in given for row in table.predict(trained.folder, path)]
    return [answer.shortened(top) for answer in answers(trained, given, heat)]


def answers(trained: Trained, given: list[str], heat: str | Path) -> list[Answer]:
    """Of pictures or texts; writes the heat map where one is asked for."""
    if trained.takes == "texts":
        return text_answers(trained, texts_of(given))
    paths = picture_paths(given)
    if heat:
        check_png(Path(heat))
    seen = see(trained, paths)
    found = picture_answers(trained, paths, seen)
    if heat:
        write_png(Path(heat), drawn(trained, seen))
    return found


def check_png(path: Path) -> None:
    """Before anything is computed."""
    if path.suffix.lower() != ".png":
        raise Mistake(f"--heat {path}: give a file that ends in .png")
    if not path.parent.is_dir():
        raise Mistake(f"--heat {path}: the folder {path.parent} does not exist")


def drawn(trained: Trained, seen: Seen) -> list[list[np.ndarray]]:
    """What belongs to the kind of model, row by row."""
    if seen.boxes is not None:
        return boxed(seen.pixels, seen.boxes)
    return masks(trained, seen) if seen.logits.dim() == 4 else heats(trained, seen)


def boxed(pixels: torch.Tensor, boxes: torch.Tensor) -> list[list[np.ndarray]]:
    """The picture, and the same with its box, row by row."""
    from descend.kinds.localise import FOUND, outlined

    return [[as_bytes(p), as_bytes(o)] for p, o in zip(pixels, outlined(pixels, boxes, FOUND), strict=True)]


def heats(trained: Trained, seen: Seen) -> list[list[np.ndarray]]:
    """The picture, and the heat for its likeliest class, row by row."""
    from descend.interpret.overlay import overlaid
    from descend.views.images import heat_of

    rows = []
    for x, pixels in zip(seen.x.split(16), seen.pixels.split(16), strict=True):
        heat, _ = heat_of(trained.model, x.to(next(trained.model.parameters()).device))
        over = overlaid(pixels, heat.cpu())
        rows += [[as_bytes(p), as_bytes(o)] for p, o in zip(pixels, over, strict=True)]
    return rows


def masks(trained: Trained, seen: Seen) -> list[list[np.ndarray]]:
    """The picture, and the classes of its pixels laid over it, row by row."""
    from descend.report.overlay import overlay, palette
    from descend.tasks.segment import middle

    y = seen.logits.argmax(dim=1)
    cut = middle(seen.pixels.flatten(0, 1), seen.logits).unflatten(0, seen.pixels.shape[:2])
    colours = palette(len(class_names(trained, seen.logits.shape[1])))
    return [
        [as_bytes(p), (overlay(p.numpy(), mask.numpy(), colours) * 255).round().astype(np.uint8)]
        for p, mask in zip(cut, y, strict=True)
    ]


def as_bytes(x: torch.Tensor) -> np.ndarray:
    """(c, h, w) in 0..1 -> (h, w, 3) of 0..255"""
    whole: np.ndarray = (x.expand(3, -1, -1) * 255).round().to(torch.uint8).movedim(0, -1).numpy()
    return whole


def write_png(path: Path, rows: list[list[np.ndarray]]) -> None:
    """All rows in one picture, small ones enlarged."""
    from PIL import Image

    sheet = np.concatenate([np.concatenate(row, axis=1) for row in rows], axis=0)
    times = max(1, -(-LEAST // min(rows[0][0].shape[:2])))
    try:
        Image.fromarray(sheet.repeat(times, axis=0).repeat(times, axis=1)).save(path)
    except OSError as error:
        raise Mistake(f"--heat {path} cannot be written: {error.strerror or error}") from None


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
    run: str, inputs: tuple[str, ...], /, *, top: int = 5, heat: str = "", labels: str = "", json: bool = False
) -> None:
    """Ask a trained model about pictures, texts or a table.

    Args:
        run: a run's folder, or a model folder.
        inputs: picture files, folders or patterns; or texts, .txt or .jsonl files; or a .csv file.
        top: how many classes to show, the likeliest first.
        heat: a PNG to write: where the model looked, the mask of a segmentation model, or the box of a localiser.
        labels: for a CLIP: the classes to choose from, with commas between them.
        json: print JSON.

    Examples:
        descend predict runs/demo photo.jpg
        descend predict runs/demo photos/ "more/*.png" --top 3 --heat heat.png
        descend predict runs/clip photo.jpg --labels "a red circle, a blue square"
        descend predict runs/opinions "a moving film" --json
        descend predict runs/table new.csv > answers.csv
    """
    named = [name.strip() for name in labels.split(",") if name.strip()]
    found = predict(run, *inputs, top=top, heat=heat, labels=named)
    if json:
        print(json_module.dumps(found, indent=2, ensure_ascii=False))
    elif found and "answers" in found[0]:
        show(found)
        if heat:
            print(f"written {heat}")
    elif found:
        show_table(found)
