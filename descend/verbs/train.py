"""descend train: a recipe, changed by flags, becomes a run."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from descend import recipes
from descend.engine.fit import Result
from descend.engine.run import Run
from descend.errors import Mistake
from descend.kinds.recipe import Recipe
from descend.verbs.flags import parse, read_seconds
from descend.verbs.measure import measure
from descend.verbs.start import run_recipe, with_steps
from descend.verbs.table import format_table

HELP = """usage: descend train RECIPE [--flags]

Train a recipe. Every value of it is a flag; `descend train RECIPE --help` shows them.

  --list          the recipes, with their data, size and time
  --out DIR       the run's folder (default: runs/RECIPE/TIME)
  --budget 5m     as many steps as fit into this time
  --replace       replace the run that is in --out

examples
  descend train gpt2-pydoc
  descend train gpt2-pydoc --data.path book.txt --steps 2000 --budget 20m
  descend train lenet-digits --optim.lr 3e-4 --seed 1 --out runs/mine
  torchrun --nproc-per-node 2 -m descend train gpt2-pydoc --out runs/two
"""


def train(
    recipe: str | Recipe,
    out: str | Path | None = None,
    budget: float | str = 0.0,
    replace: bool = False,
    quiet: bool = False,
) -> tuple[Run, Result]:
    """Train a recipe.

    Args:
        recipe: its name, such as "gpt2-pydoc", or your own Recipe.
        out: the run's folder; None: runs/RECIPE/TIME.
        budget: longest time, in seconds or as "5m": the steps are fitted to it; 0: all steps of the recipe.
        replace: replace the run that is in `out`.
        quiet: show no progress.

    Returns:
        The run (its folder, metrics and checkpoints), and how it ended (step, best score, reason).
    """
    named = isinstance(recipe, str)
    name = recipe if isinstance(recipe, str) else type(recipe).__name__.lower()
    values = recipes.get(recipe) if isinstance(recipe, str) else recipe
    return start_run(name if named else f"own-{name}", values, out, budget, replace, quiet)


def start_run(
    name: str, recipe: Recipe, out: str | Path | None, budget: float | str, replace: bool, quiet: bool
) -> tuple[Run, Result]:
    """Find the folder, fit the steps to the budget, run."""
    if out is None and "WORLD_SIZE" in os.environ:
        raise Mistake("under torchrun every process must name the same folder: give --out DIR")
    folder = Path(out) if out else Path("runs") / name / time.strftime("%Y%m%d-%H%M%S")
    if (folder / "recipe.json").exists() and not replace:
        raise Mistake(f"{folder} already holds a run; continue it (descend resume {folder}) or give --replace")
    limit = read_seconds(budget) if isinstance(budget, str) and budget else float(budget or 0)
    if limit:
        recipe = with_steps(recipe, measure(recipe).steps_within(0.95 * limit))
    return run_recipe(name, recipe, folder, replace, limit, quiet)


@dataclass(frozen=True)
class TrainFlags:
    """What to train, where to, and for how long."""

    recipe: Annotated[Any, tyro.conf.arg(name="")]
    out: str = ""
    """The run's folder; empty: runs/RECIPE/TIME."""
    budget: str = ""
    """Time limit, such as 90s, 5m or 2h: the number of steps is chosen to fit."""
    replace: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Replace the run that is in --out."""
    quiet: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Show no progress."""


def main(args: list[str]) -> None:
    """The command: its flags depend on the recipe."""
    if not args or args[0] in ("-h", "--help"):
        print(HELP, end="")
        return
    if args[0] == "--list":
        print_recipes()
        return
    name = args[0]
    if name.startswith("-"):
        raise Mistake("name the recipe first: descend train RECIPE --flags; descend train --list shows them")
    order: TrainFlags = parse(TrainFlags, args[1:], f"descend train {name}", default=TrainFlags(recipes.get(name)))
    run, result = start_run(name, order.recipe, order.out or None, order.budget, order.replace, order.quiet)
    print_result(run, result, order.recipe)


def print_result(run: Run, result: Result, recipe: Recipe) -> None:
    """How it ended and where to look; a run that a signal stopped ends with the signal's exit code."""
    if int(os.environ.get("RANK", 0)):
        return
    if result.reason.startswith("SIG"):
        print(f"{result.reason}: saved at step {result.step}. Continue with: descend resume {run.folder}")
        raise SystemExit(130 if result.reason == "SIGINT" else 143)
    if result.best is not None:
        _, _, watched = recipe.loop.watch.partition(" ")
        print(f"best validation {watched} {result.best:.4f} at step {result.best_step} of {result.step}")
    if result.reason != "finished":
        print(f"stopped early: {result.reason}")
    print(f"run    {run.folder}")
    print(f"report {run.folder / 'report.html'}")


def print_recipes() -> None:
    """Every recipe: data, size, steps, and the time it takes on two cores."""
    rows = []
    for name in recipes.names():
        recipe = recipes.get(name)
        rows.append([name, recipe.parameters, recipe.loop.steps, recipe.takes, recipe.about])
    print(format_table(["recipe", "parameters", "steps", "time", "what it is"], rows))
