"""descend scale: train a ladder of sizes of a recipe, fit its scaling law, and say what more compute would give."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import torch
import tyro

from descend import recipes
from descend.engine import checkpoint
from descend.engine.progress import steady
from descend.engine.run import ENDS, Run
from descend.errors import Mistake
from descend.files import field, read_json, write_json
from descend.kinds.recipe import Recipe
from descend.kinds.saved import from_json, to_json
from descend.own_code import refuse_while_importing
from descend.report.scaling import write_scaling
from descend.tuning.ladder import Rung, answer, plan_ladder, resize
from descend.verbs.asked import find_recipe, name_recipe, read_asked
from descend.verbs.flags import read_seconds
from descend.verbs.start import continue_run, run_recipe
from descend.verbs.table import format_table

HELP = """usage: descend scale RECIPE [--sizes 5] [--budget 30m] [--times 10] [--flags]

Train a ladder of sizes of a recipe on your data, fit the law of the loss over compute, and answer: what would ten
times the compute give, and which size should be trained with it? Every size is a run in DIR/sizes. A ladder that was
interrupted or killed goes on when the same command is given again.

  --sizes 5                 how many; the largest is the recipe itself
  --span 8                  how many times wider the largest is than the smallest
  --by model.width          what makes the model larger; may be given several times (default: its widths)
  --times 10                how much more compute to ask about
  --budget 30m              time of the whole ladder; without it, the largest size takes the recipe's steps
  --out DIR                 the ladder's folder (default: runs/RECIPE-scale)
  --replace                 replace the ladder that is in --out

The other flags are those of `descend train` and hold for every size.

examples
  descend scale gpt2-chars --data.path book.txt --sizes 5 --budget 30m
  descend scale lenet-digits --by model.hidden --out runs/ladder --times 100
"""
SAME = ("name", "sizes", "span", "by", "budget", "values")  # what makes a command the same ladder


@dataclass(frozen=True)
class ScaleFlags:
    """How many sizes, for how long, and where to."""

    recipe: Annotated[Any, tyro.conf.arg(name="")]
    sizes: int = 5
    """How many sizes."""
    span: float = 8.0
    """How many times wider the largest is than the smallest."""
    by: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """A flag that makes the model larger; may be given several times."""
    times: float = 10.0
    """How much more compute to ask about."""
    budget: str = ""
    """Time of the whole ladder, such as 10m or 2h."""
    out: str = ""
    """The ladder's folder; empty: runs/RECIPE-scale."""
    replace: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Replace the ladder that is in --out."""
    quiet: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Show no progress."""
    json: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Print JSON."""


def scale(
    recipe: str | Recipe,
    values: Mapping[str, Any] | None = None,
    out: str | Path | None = None,
    sizes: int = 5,
    span: float = 8.0,
    by: Sequence[str] = (),
    times: float = 10.0,
    budget: float | str = 0.0,
    replace: bool = False,
    quiet: bool = True,
) -> dict[str, Any]:
    """Train a ladder of sizes of a recipe, fit its scaling law, and say what more compute would give.

    Args:
        recipe: its name, its file, or your own Recipe.
        values: other values of the recipe, for every size, by the names of its flags: {"steps": 500}.
        out: the ladder's folder; None: runs/RECIPE-scale.
        sizes: how many; the largest is the recipe itself.
        span: how many times wider the largest is than the smallest.
        by: the flags that make the model larger; none: its widths.
        times: how much more compute to ask about.
        budget: time of the whole ladder, in seconds or as "30m"; 0: the largest size takes the recipe's steps.
        replace: replace the ladder that is in `out`.
        quiet: show no progress.

    Returns:
        What `descend scale --json` prints: rungs, law, prediction, warnings.
    """
    refuse_while_importing("scale")
    name = recipe if isinstance(recipe, str) else name_recipe(recipe)
    asked = find_recipe(recipe, values)
    flags = ScaleFlags(asked, sizes, span, tuple(by), times, str(budget or ""), str(out or ""), replace, quiet)
    return climb(name, flags)


def climb(name: str, order: ScaleFlags) -> dict[str, Any]:
    """Plan the ladder or read its plan, train what is not done, fit and write the page."""
    if not order.times > 0:
        raise Mistake(f"--times {order.times:g}: how many times the compute, above 0")
    folder = Path(order.out) if order.out else Path("runs") / f"{recipes.shorten(name)}-scale"
    order_budget = read_seconds(order.budget) if order.budget else 0.0
    asked = {
        "name": name,
        "sizes": order.sizes,
        "span": order.span,
        "by": list(order.by),
        "budget": order_budget,
        "values": to_json(order.recipe),
        "descend": version("descend"),
        "started": time.strftime("%Y-%m-%d %H:%M:%S"),
    }
    folder.mkdir(parents=True, exist_ok=True)
    with Run(folder).locked():
        rungs = read_plan(folder, asked, order)
        losses, state = train_rungs(name, folder, order, rungs)
        found = summarize(folder, asked, order, rungs, losses, state)
        write_scaling(folder, found)
    return found


def read_plan(folder: Path, asked: dict[str, Any], order: ScaleFlags) -> list[Rung]:
    """The ladder that this folder holds, or a new one; what is asked for must be the same."""
    path = folder / "scale.json"
    others = [p for p in folder.iterdir() if p.name != "lock" and not p.name.startswith(".")]
    if others and not path.exists():
        raise Mistake(f"{folder} is not empty and not a ladder (no scale.json); choose another --out")
    if path.exists() and order.replace:
        for other in others:
            shutil.rmtree(other) if other.is_dir() and not other.is_symlink() else other.unlink()
    elif path.exists():
        there = read_json(path)
        other_keys = [key for key in SAME if field(there, key, object, path) != asked[key]]
        if "values" in other_keys and from_json(there["values"], str(path)) == order.recipe:
            other_keys.remove("values")  # written by another version, by other names
        if other_keys:
            what = "recipe" if other_keys[0] == "values" else other_keys[0]
            raise Mistake(f"{folder} holds a ladder with a different {what}; choose another --out, or give --replace")
        return [read_rung(rung, path) for rung in field(there, "rungs", list, path)]
    rungs = plan_ladder(order.recipe, order.sizes, order.span, asked["budget"], order.by)
    write_json(path, {**asked, "rungs": [rung.describe() for rung in rungs]})
    return rungs


def read_rung(saved: dict[str, Any], path: Path) -> Rung:
    """A size as it was planned."""
    values = {n: tuple(v) if isinstance(v, list) else v for n, v in field(saved, "values", dict, path).items()}
    factor, flops, seconds = (field(saved, name, float, path) for name in ("factor", "flops", "seconds"))
    parameters, steps = (field(saved, name, int, path) for name in ("parameters", "steps"))
    return Rung(factor, values, parameters, flops, seconds, steps)


def train_rungs(name: str, folder: Path, order: ScaleFlags, rungs: list[Rung]) -> tuple[list[float | None], str]:
    """Each size in its own run, the smallest first; done ones stay, a half-trained one goes on."""
    threads, losses = torch.get_num_threads(), []
    state = "finished"
    for number, rung in enumerate(rungs):
        recipe, where = resize(order.recipe, rung.values, rung.steps), folder / "sizes" / str(number)
        run = Run(where)
        if state == "finished" and not is_done(run):
            torch.set_num_threads(threads)
            if checkpoint.names(run.checkpoints):
                began = field(run.recipe, "environment.threads", int, where / "recipe.json")
                result = continue_run(name, recipe, run, began, order.quiet)
            else:
                shutil.rmtree(where, ignore_errors=True)
                run, result = run_recipe(name, recipe, where, quiet=order.quiet)
            if result.reason.startswith("SIG"):
                state = "interrupted"
        losses.append(read_loss(run, recipe)[1] if is_done(run) else None)
    return losses, state


def is_done(run: Run) -> bool:
    """Whether the run has reached its end."""
    return any(line.get("event") in ENDS for line in run.lines())


def read_loss(run: Run, recipe: Recipe) -> tuple[str, float]:
    """The least validation loss; of a run without one, the watched score, a share that is to rise as 1 − it."""
    scores = [line["valid"] for line in run.lines() if isinstance(line.get("valid"), dict)]
    higher, watched = recipe.loop.watched
    name = "loss" if scores and "loss" in scores[0] else watched
    values = [float(score[name]) for score in scores if name in score]
    if not values:
        raise Mistake(f"{run.folder}: its metrics hold no validation score; was it trained with other --watch?")
    if name != "loss" and higher:
        return f"1 - {name}", max(1e-9, 1 - max(values))
    return name, min(values)


def summarize(
    folder: Path,
    asked: dict[str, Any],
    order: ScaleFlags,
    rungs: list[Rung],
    losses: list[float | None],
    state: str,
) -> dict[str, Any]:
    """The ladder as JSON: every size, the law, the answer."""
    done = [(rung, loss) for rung, loss in zip(rungs, losses, strict=True) if loss is not None]
    named = "loss"
    for number, loss in enumerate(losses):
        if loss is not None:
            named = read_loss(Run(folder / "sizes" / str(number)), order.recipe)[0]
    found: dict[str, Any] = {"law": None, "prediction": None, "times": order.times, "warnings": []}
    if len(done) >= 3:
        found = answer([rung for rung, _ in done], [loss for _, loss in done], order.times)
    listed = [
        {**rung.describe(), "loss": loss, "run": f"sizes/{number}"}
        for number, (rung, loss) in enumerate(zip(rungs, losses, strict=True))
    ]
    return {"folder": str(folder), "recipe": asked["name"], "state": state, "score": named, "rungs": listed, **found}


def main(args: list[str]) -> None:
    """The command: its flags depend on the recipe."""
    if not args or args[0] in ("-h", "--help"):
        print(HELP, end="")
        return
    name = args[0]
    if name.startswith("-"):
        raise Mistake("name the recipe first: descend scale RECIPE --flags")
    order = read_asked(ScaleFlags, recipes.get(name), args[1:], f"descend scale {name}")
    found = climb(name, order)
    print(json.dumps(found, indent=1) if order.json else format_ladder(found))


def format_ladder(found: dict[str, Any]) -> str:
    """A line for each size, the law, the answer and the warnings."""
    rows = [
        [r["parameters"], r["steps"], f"{r['compute']:.3g}", "-" if r["loss"] is None else steady(r["loss"])]
        for r in found["rungs"]
    ]
    parts = [format_table(["parameters", "steps", "FLOPs", found["score"]], rows)]
    if found["prediction"]:
        law, told, score = found["law"], found["prediction"], found["score"]
        between = lambda pair: "95%: {:.4g} to {:.4g}".format(*pair)
        shape = f"{law['floor']:.4g} + ({law['scale']:.3g} / C)^{law['alpha']:.3g}"
        size = f"{told['parameters']:,} parameters (widths x {told['width_factor']:.2f}) and {told['steps']:,} steps"
        parts += [
            f"law       {score} = {shape}    R² {law['r_squared']:.4f}",
            f"floor     {law['floor']:.4g} ({between(law['floor_interval'])})",
            f"exponent  {law['alpha']:.3g} ({between(law['alpha_interval'])})",
            f"{found['times']:g}x the compute: {score} {told['loss']:.4g} ({between(told['interval'])}), with {size}",
        ]
    elif found["state"] != "finished":
        parts.append("interrupted: give the same command again to go on")
    parts += [f"warning: {line}" for line in found["warnings"]]
    return "\n".join([*parts, f"page: {found['folder']}/report.html"])
