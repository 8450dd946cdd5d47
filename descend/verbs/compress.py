"""descend compress: a trained model in fewer bits, with fewer weights, or as a smaller student; before and after."""

from __future__ import annotations

import ast
import json as json_module
import shutil
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from descend.engine import checkpoint as checkpoints
from descend.engine.evaluation import score_set
from descend.engine.replacement import check_place
from descend.engine.run import Run
from descend.errors import Mistake
from descend.exports.compression import Shrinking, Side, measure_curve, tabulate, time_sides, time_writing
from descend.exports.public_folder import add_card
from descend.kinds.recipe import Recipe
from descend.kinds.saved import read_saved
from descend.kinds.taught import make_student
from descend.models import load
from descend.nn.quantized import GROUP
from descend.own_code import use_code
from descend.report.showing import build_parts, take_weights
from descend.verbs.start import run_recipe
from descend.weights.checkpoints import resolve_checkpoint, step_of
from descend.weights.pipeline import Pipeline


def compress(
    run: str | Path,
    out: str | Path,
    bits: int = 0,
    group: int = GROUP,
    prune: float = 0.0,
    student: Mapping[str, Any] | None = None,
    steps: int = 0,
    checkpoint: str | int = "best",
    replace: bool = False,
) -> dict[str, Any]:
    """Make a trained model smaller, and measure what that gains and costs.

    Args:
        run: a run's folder, or a model folder (of which only size and speed are known).
        out: the new folder: a run that the other verbs open, or a model folder.
        bits: 8 or 4: weights in codes of so many bits; 0: as they are.
        group: so many neighbours of a row share a step; 0: the whole row.
        prune: the share of the weights that is set to 0, the smallest first.
        student: other sizes of the model, such as {"width": 96}: such a one is trained first, with the run as teacher.
        steps: of the student's training; 0: as many as the run had.
        checkpoint: best, last or a step.
        replace: replace the run that is in `out`.

    Returns:
        {"out", "rows": [{"what", "before", "after", "said"}, ..], "curve": [{"batch", "throughput", "latency_ms"}, ..]}
        and what was done.
    """
    check_wish(bits, prune, student, group)
    target = Path(out)
    check_place(target, replace)
    if not (Path(run) / "recipe.json").exists():
        if student:
            raise Mistake(f"--student: {run} is not a run, so there are no data to teach with")
        return compress_folder(Path(run), target, Shrinking(bits, group, prune))
    found = Run.open(run)
    saved = read_saved(found.recipe, found.folder / "recipe.json")
    before = open_side(saved.recipe, resolve_checkpoint(found.folder, checkpoint))
    torch.set_num_threads(saved.threads)
    name, recipe, folder, told = saved.name, saved.recipe, resolve_checkpoint(found.folder, checkpoint), {}
    if student:
        recipe = make_student(saved.recipe, str(folder), student, steps)
        alone = not (bits or prune)
        taught = target if alone else target.with_name(f"{target.name}-student")
        made, _ = run_recipe(f"student of {name}", recipe, taught, overwrite=replace)
        folder, told = resolve_checkpoint(made.folder, "best"), {"student": str(made.folder)}
        torch.set_num_threads(saved.threads)
        if alone:
            return told | report(before, open_side(recipe, folder), target)
    after = open_side(recipe, folder)
    told |= Shrinking(bits, group, prune).apply(after.model)
    origin = Run.open(told.get("student", found.folder))
    made = write_run(origin, folder, after, target, replace)
    measured = report(before, after, target)
    log_end(made, step_of(folder.name) or 0, after.scores)
    return told | measured


def check_wish(bits: int, prune: float, student: Mapping[str, Any] | None, group: int) -> None:
    """Refuse what asks for nothing, or for what there is not."""
    if not (bits or prune or student):
        raise Mistake("say how: --int8 or --int4, --prune 0.5, --student width=96,depth=2, or several of them")
    if bits not in (0, 4, 8):
        raise Mistake(f"{bits} bits: weights are kept in 8 or 4")
    if not 0 <= prune < 1:
        raise Mistake(f"--prune {prune}: a share of the weights, at least 0 and less than 1 (all would be none left)")
    if group < 0:
        raise Mistake(f"--group {group}: so many weights share a step; 0 is a whole row")


def open_side(recipe: Recipe, folder: Path) -> Side:
    """The model of a checkpoint in the task of its recipe, with its scores on the validation data."""
    parts = build_parts(recipe)
    take_weights(parts, folder)
    refuse_pipeline(parts.model, folder)
    parts.model.companions = load(folder).companions
    side = Side(parts.model, parts.task, parts.valid)
    side.weigh(folder)
    return side


def refuse_pipeline(model: object, folder: Path) -> None:
    if isinstance(model, Pipeline):
        raise Mistake(f"{folder} holds a pipeline of several networks; compress the folder of one, such as unet/")


def report(before: Side, after: Side, out: Path) -> dict[str, Any]:
    """Both sides measured: size, speed in turn, scores."""
    after.weigh(resolve_checkpoint(out))
    for side in (before, after):
        assert side.task is not None
        side.scores = score_set(side.task, side.valid)
    curve = []
    for batch in islice(before.valid, 1):
        time_sides([before, after], batch)
        assert after.task is not None
        curve = measure_curve(after.task, batch)
    time_writing([before, after])
    return {"out": str(out), "rows": tabulate(before, after), "curve": curve}


def write_run(run: Run, folder: Path, side: Side, out: Path, replace: bool) -> Run:
    """A run of its own: the recipe, and one checkpoint without the state of a training."""
    made = Run.create(out, {**run.recipe, "compressed": str(run.folder)}, replace)
    step = step_of(folder.name) or 0

    def write_model(aside: Path) -> None:
        side.model.save_pretrained(aside)

    path = checkpoints.save(made.checkpoints, step, write_model, {"step": step, "best_step": step})
    checkpoints.point(made.checkpoints, "best", path)
    return made


def log_end(run: Run, step: int, scores: Mapping[str, float]) -> None:
    """What the list of runs and the report show of it."""
    run.log({"step": step, "time": 0.0, "valid": dict(scores)})
    run.log({"step": step, "time": 0.0, "event": "finished"})
    run.close()


def compress_folder(folder: Path, out: Path, shrinking: Shrinking) -> dict[str, Any]:
    """A public model folder: size and, of a model that writes, speed; its quality is not known here."""
    before, after = Side(load(folder)), Side(load(folder))
    refuse_pipeline(before.model, folder)
    told = shrinking.apply(after.model)
    with TemporaryDirectory(dir=out.absolute().parent) as aside:
        after.model.save_pretrained(aside)
        add_card(after.model, folder, folder, Path(aside), out.name)
        shutil.copytree(aside, out, dirs_exist_ok=True)
    before.weigh(resolve_checkpoint(folder))
    after.weigh(out)
    time_writing([before, after])
    return {**told, "out": str(out), "rows": tabulate(before, after), "curve": []}


def read_sizes(text: str) -> dict[str, Any]:
    """ "width=96, depth=2" -> {"width": 96, "depth": 2}"""
    try:
        call = ast.parse(f"f({text})", mode="eval").body
        assert isinstance(call, ast.Call)
        assert not call.args
        return {str(word.arg): ast.literal_eval(word.value) for word in call.keywords}
    except (SyntaxError, ValueError, AssertionError):
        raise Mistake(f"--student {text!r}: fields of the model's config, such as width=96,depth=2") from None


def format_report(found: Mapping[str, Any]) -> str:
    """The table, the curve, and where it is."""
    lines = [f"{'':14} {'before':>12} {'after':>12}"]
    for row in found["rows"]:
        whole = row["what"] in ("bytes", "packed") or min(row["before"], row["after"]) >= 1000
        numbers = (f"{row[side]:,.0f}" if whole else f"{row[side]:.4g}" for side in ("before", "after"))
        lines.append(f"{row['what']:14} {' '.join(f'{number:>12}' for number in numbers)}   {row['said']}")
    if "zeros" in found:
        lines.append(f"{found['zeros']:.1%} of the pruned weights are 0; the file keeps them, packed it does not")
    if found["curve"]:
        lines.append("batch    examples/s    latency of the batch")
        curve = ((row["batch"], row["throughput"], row["latency_ms"]) for row in found["curve"])
        lines += [f"{size:5.0f} {rate:13,.0f} {wait:15.2f} ms" for size, rate, wait in curve]
    if not any(row["what"] not in ("bytes", "packed", "examples/s", "tokens/s") for row in found["rows"]):
        lines.append("quality is not known: a model folder has no data of its own")
    return "\n".join([*lines, f"written {found['out']}"])


def command(
    run: str,
    /,
    *,
    out: str,
    int8: bool = False,
    int4: bool = False,
    group: int = GROUP,
    prune: float = 0.0,
    student: str = "",
    steps: int = 0,
    checkpoint: str = "best",
    code: str = "",
    replace: bool = False,
    json: bool = False,
) -> None:
    """Make a trained model smaller, and tell size, speed and quality before and after.

    Args:
        run: a run's folder, or a model folder.
        out: the new folder; the other verbs open it like the old one.
        int8: weights as codes of 8 bits.
        int4: weights as codes of 4 bits.
        group: so many neighbours of a row share a step; 0: the whole row.
        prune: the share of the weights that is set to 0, the smallest first.
        student: other sizes of the model, such as width=96,depth=2; it is trained first, with the run as teacher.
        steps: of the student's training; 0: as many as the run had.
        checkpoint: best, last or a step.
        code: the file of a recipe or model of your own, where it is not found by its name.
        replace: replace the run that is in the folder.
        json: print JSON.

    Examples:
        descend compress runs/demo --int8 --out runs/demo-int8
        descend compress runs/demo --int4 --group 32 --out runs/demo-int4
        descend compress runs/demo --student width=96,depth=2 --prune 0.5 --int8 --out runs/small
    """
    use_code(code)
    if int8 and int4:
        raise Mistake("--int8 and --int4: a weight has either 8 bits or 4; give one of them")
    bits = 8 if int8 else 4 if int4 else 0
    sizes = read_sizes(student) if student else None
    found = compress(run, out, bits, group, prune, sizes, steps, checkpoint, replace)
    print(json_module.dumps(found, indent=2) if json else format_report(found))
