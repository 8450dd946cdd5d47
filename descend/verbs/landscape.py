"""descend landscape: the loss around a run's weights, as a picture."""

from __future__ import annotations

import json as json_module
import math
from collections.abc import Iterable
from dataclasses import asdict
from itertools import islice
from pathlib import Path

import torch

from descend.contracts import Batch
from descend.data.streams.batches import count_examples, slice_examples
from descend.engine.hardware import move_batch
from descend.engine.loss_value import measure_loss
from descend.engine.parts import Parts
from descend.engine.run import Run
from descend.errors import Mistake
from descend.interpret.landscape import draw_direction, read_weights, scan_line, scan_plane, subtract
from descend.kinds.saved import read_saved
from descend.own_code import use_code
from descend.report.landscape import Landscape, draw_landscape, make_landscape_page
from descend.report.showing import build_parts, take_weights
from descend.verbs.lab import check_out
from descend.web.page import write_page
from descend.weights.checkpoints import checkpoint_names, resolve_checkpoint, step_name, step_of

BEYOND = 0.25  # how far a line goes on past both checkpoints, as a share of the way


def landscape(
    run: str | Path,
    checkpoint: str | int = "best",
    start: str | int = "first",
    points: int = 21,
    radius: float = 1.0,
    examples: int = 256,
    seed: int = 0,
) -> Landscape:
    """The loss on a plane through a checkpoint's weights, and along the line from another checkpoint to it.

    The plane is spanned by two random directions, filter by filter as long as the weights. The loss is the one that
    training minimises, in evaluation mode, on validation examples; the run is left as it is.

    Args:
        run: the run's folder.
        checkpoint: in the middle of the plane: best, last or a step.
        start: where the line begins: first (the earliest that is kept), last, best or a step.
        points: along each side of the plane, and of the line; odd, so that the checkpoint is one of them.
        radius: how far the plane goes, in lengths of the weights.
        examples: at most so many of the validation data.
        seed: of the two directions.
    """
    check_numbers(points, radius, examples)
    found = Run.open(run)
    saved = read_saved(found.recipe, found.folder / "recipe.json")
    folder = resolve_checkpoint(found.folder, checkpoint)
    begin = choose_start(found.folder, start, folder)
    parts = build_parts(saved.recipe)
    check_single(parts)
    torch.set_num_threads(saved.threads)
    device = next(parts.task.parameters()).device
    batches = [move_batch(batch, device) for batch in take_some(parts.valid, examples)]
    if not batches:
        raise Mistake(f"{run} has no validation data to take the loss of: a run that plays or only samples has none")

    def loss() -> float:
        return measure_loss(parts.task, batches)

    origin = None
    if begin is not None:
        take_weights(parts, begin)
        origin = read_weights(parts.model)
    take_weights(parts, folder)
    middle = loss_or_mistake(loss, run)
    steps = [radius * (2 * i / (points - 1) - 1) for i in range(points)]
    steps[points // 2] = 0.0
    random = torch.Generator().manual_seed(seed)
    first, second = (draw_direction(parts.model, random) for _ in range(2))
    plane = scan_plane(parts.model, loss, first, second, steps).tolist()
    way, line = [], []
    if origin is not None:
        way = sorted({-BEYOND, 0.0, 1.0, 1 + BEYOND, *(i / (points - 1) for i in range(points))})
        back = subtract(origin, read_weights(parts.model))
        line = scan_line(parts.model, loss, back, [1 - t for t in way])
    used = sum(count_examples(batch) for batch in batches)
    names = (found.folder.name, folder.name, begin.name if begin is not None else "")
    return Landscape(*names, used, seed, middle, steps, plane, way, line)


def check_numbers(points: int, radius: float, examples: int) -> None:
    """Refuse what has no picture, before anything is read."""
    if points < 3 or points % 2 == 0:
        raise Mistake(f"--points {points}: give an odd number from 3, so that the checkpoint is in the middle")
    if not 0 < radius < math.inf:
        raise Mistake(f"--radius {radius:g}: give a number above 0; 1 goes as far as the weights are long")
    if examples < 1:
        raise Mistake(f"--examples {examples}: at least 1")


def choose_start(run: Path, start: str | int, folder: Path) -> Path | None:
    """The checkpoint where the line begins; None where the run keeps no other than the one in the middle."""
    if start == "first":
        kept = [step for name in checkpoint_names(run / "checkpoints") if (step := step_of(name)) is not None]
        if not kept or step_name(min(kept)) == folder.name:
            return None
        start = min(kept)
    begin = resolve_checkpoint(run, start)
    if begin.name == folder.name:
        raise Mistake(f"--start {start}: this is the checkpoint in the middle; a line needs another one")
    return begin


def check_single(parts: Parts) -> None:
    """Refuse a task with several players: a generator and its discriminator have no loss in common."""
    if len(parts.optims) > 1:
        players = " and ".join(parts.optims)
        raise Mistake(f"landscape: this run trains {players}, each with a loss of its own; there is no single surface")


def take_some(valid: Iterable[Batch], examples: int) -> list[Batch]:
    """The first so many examples of the batches."""
    taken, left = [], examples
    for batch in islice(valid, examples):
        n = count_examples(batch)
        taken.append(batch if n <= left else slice_examples(batch, 0, left))
        left -= n
        if left <= 0:
            break
    return taken


def loss_or_mistake(loss: object, run: str | Path) -> float:
    """The loss at the checkpoint; a Mistake where the validation batches lack what a step of training needs."""
    try:
        value = float(loss())  # type: ignore[operator]
    except KeyError as error:
        said = f"{run}: its validation data lack {error}, which its loss needs; no surface can be drawn"
        raise Mistake(said) from None
    if not math.isfinite(value):
        raise Mistake(f"{run}: the loss at this checkpoint is {value}; --checkpoint names another one")
    return value


def command(
    run: str,
    /,
    *,
    checkpoint: str = "best",
    start: str = "first",
    points: int = 21,
    radius: float = 1.0,
    examples: int = 256,
    seed: int = 0,
    out: Path | None = None,
    code: str = "",
    json: bool = False,
) -> None:
    """The loss around a run's weights: on a plane through a checkpoint, and along the line from an earlier one.

    Args:
        run: the run's folder.
        checkpoint: in the middle of the plane: best, last or a step.
        start: where the line begins: first (the earliest that is kept), last, best or a step.
        points: along each side of the plane, odd; time goes with its square.
        radius: how far the plane goes, in lengths of the weights.
        examples: at most so many of the validation data.
        seed: of the two random directions.
        out: the picture: .html, .png or .svg; by default landscape.html in the run's folder.
        code: the file of a recipe or model of your own, where it is not found by its name.
        json: print all losses as JSON, and write a picture only where --out asks for it.

    Examples:
        descend landscape runs/demo
        descend landscape runs/demo --radius 0.3 --points 31 --out surface.png
        descend landscape runs/demo --start 100 --checkpoint last
    """
    use_code(code)
    if out is not None:
        check_out(out)
    found = landscape(run, checkpoint, start, points, radius, examples, seed)
    path = out if out is not None or json else Run.open(run).folder / "landscape.html"
    if path is not None and path.suffix == ".html":
        write_page(path, make_landscape_page(found))
    elif path is not None:
        draw_landscape(found).savefig(path, dpi=160)
    if json:
        print(json_module.dumps(asdict(found)))
        return
    print(f"loss around {found.checkpoint}, {found.examples} validation examples, {points} × {points} points")
    for name, value in found.facts().items():
        print(f"{name:28} {value:.4g}")
    print(f"written {path}")
