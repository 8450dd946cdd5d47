"""descend train: a recipe, changed by flags, becomes a run."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from descend import recipes
from descend.engine.distributed import join, tell_lost_processes
from descend.engine.fit import Result
from descend.engine.replacement import check_place
from descend.engine.run import Run
from descend.errors import Mistake
from descend.kinds.recipe import Recipe
from descend.kinds.saved import read_saved, to_json
from descend.own_code import refuse_while_importing
from descend.verbs.asked import find_recipe, name_flags, name_recipe, read_asked, shorten_run
from descend.verbs.compare import run_compared, tell_gain
from descend.verbs.flags import read_seconds
from descend.verbs.measure import measure
from descend.verbs.start import continue_run
from descend.verbs.table import format_table

LONGER = 4  # times the steps of a recipe that a budget may give it; validation chooses the best of them
HELP = """usage: descend train RECIPE [--flags]

Train a recipe, by its name or as a file of your own that holds RECIPE. Every value of it is a flag;
`descend train RECIPE --help` shows them.

  --list          the recipes, with their data, size and time
  --model NAME    another model: a family such as vit, or a config of your own, as my_net.py:MyConfig
  --adapter NAME  of a language model that stays as it is: lora, bottleneck, soft-prompt or prefix
  --out DIR       the run's folder (default: runs/RECIPE/TIME)
  --budget 5m     as many steps as fit into this time, fewer than the recipe has or up to four times as many
  --replace       replace the run that is in --out
  --resume-if-there
                  continue the run that is in --out, if it is this one (under torchrun: always)

examples
  descend train gpt2-pydoc
  descend train gpt2-pydoc --data.path book.txt --steps 2000 --budget 20m
  descend train lenet-digits --optim.lr 3e-4 --seed 1 --out runs/mine
  descend train my_recipe.py --steps 500
  descend train cnn-images --data.path photos/ --model my_net.py:MyConfig --model.width 64
  descend train instruct-tasks --start.path gpt2/ --adapter prefix --adapter.tokens 20 --optim.lr 0.02
  torchrun --nproc-per-node 2 -m descend train gpt2-pydoc --out runs/two
"""


def train(
    recipe: str | Recipe,
    values: Mapping[str, Any] | None = None,
    out: str | Path | None = None,
    budget: float | str = 0.0,
    replace: bool = False,
    quiet: bool = False,
    resume_if_there: bool = False,
) -> tuple[Run, Result]:
    """Train a recipe: `run, result = descend.train("mlp-csv", {"data.path": "homes.csv", "optim.lr": 0.01})`

    Args:
        recipe: its name, such as "gpt2-pydoc", its file, such as "my_recipe.py", or your own Recipe.
        values: other values of the recipe, by the names of its flags: {"optim.lr": 0.1, "steps": 500}.
        out: the run's folder; None: runs/RECIPE/TIME.
        budget: longest time, in seconds or as "5m": the steps are fitted to it, fewer than the recipe has or up to four
            times as many, unless `values` say how many; 0: the steps of the recipe.
        replace: replace the run that is in `out`.
        quiet: show no progress.
        resume_if_there: continue the run that is in `out`, if it has the same name and values.

    Returns:
        The run (its folder, metrics and checkpoints), and how it ended (step, best score, reason).
    """
    refuse_while_importing("train")
    flags = TrainFlags(find_recipe(recipe, values), str(out or ""), str(budget or ""), replace, resume_if_there, quiet)
    return start_run(name_recipe(recipe), flags, list(values or ()))


def start_run(name: str, asked: TrainFlags, given: Iterable[str]) -> tuple[Run, Result]:
    """Find the folder, fit the steps to the budget, run. `given`: the flags that the user gave."""
    if not asked.out and "WORLD_SIZE" in os.environ:
        raise Mistake("under torchrun every process must name the same folder: give --out DIR")
    folder = Path(asked.out) if asked.out else Path("runs") / name / time.strftime("%Y%m%d-%H%M%S")
    limit = read_seconds(asked.budget) if asked.budget else 0.0
    recipe, given = asked.recipe, list(given)
    again = asked.resume_if_there or restarts_by_itself(asked.replace)
    own = find_own(folder, name, recipe, given if limit else None) if again else None
    if own is None:
        check_place(folder, asked.replace)
    with tell_lost_processes():
        world = join()
        world.wait()  # all have looked before the first one writes: who comes late would find its run there
    if own is not None:
        run, saved, threads = own
        return run, continue_run(name, saved, run, threads, asked.quiet)
    if limit:
        most = recipe.loop.steps if "steps" in given else LONGER * recipe.loop.steps
        steps = world.agree({"steps": measure(recipe).steps_within(0.95 * limit, most)})["steps"]
        recipe = shorten_run(recipe, round(steps), given)
    return run_compared(name, recipe, folder, asked.replace, limit, asked.quiet)


def restarts_by_itself(replace: bool) -> bool:
    """Whether torchrun started this process: after a lost one it gives the same command again, to go on. (The run that
    was to be replaced has been, when it comes back.)"""
    restarts = os.environ.get("TORCHELASTIC_RESTART_COUNT", "")
    return restarts.isdigit() and (not replace or int(restarts) > 0)


def find_own(folder: Path, name: str, recipe: Recipe, given: list[str] | None) -> tuple[Run, Recipe, int] | None:
    """The run in the folder, its recipe and threads, if they are those that are asked for now; a budget's number of
    steps was measured when the run began (`given`: the flags beside the budget, None without one)."""
    if not (folder / "recipe.json").is_file():
        return None
    run = Run.open(folder)
    called, saved, threads = read_saved(run.recipe, folder / "recipe.json")
    if given is not None:
        recipe = shorten_run(recipe, saved.loop.steps, given)
    return (run, saved, threads) if called == name and to_json(saved) == to_json(recipe) else None


@dataclass(frozen=True)
class TrainFlags:
    """What to train, where to, and for how long."""

    recipe: Annotated[Any, tyro.conf.arg(name="")]
    out: str = ""
    """The run's folder; empty: runs/RECIPE/TIME."""
    budget: str = ""
    """Time limit, such as 90s, 5m or 2h: the number of steps is chosen to fit (with --steps, at most that many)."""
    replace: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Replace the run that is in --out."""
    resume_if_there: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Continue the run that is in --out, if it is of this recipe with these values; otherwise start it."""
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
    asked = read_asked(TrainFlags, recipes.get(name), args[1:], f"descend train {name}")
    run, result = start_run(recipes.shorten(name), asked, name_flags(args[1:]))
    print_result(run, result, asked.recipe)


def print_result(run: Run, result: Result, recipe: Recipe) -> None:
    """How it ended and where to look; a run that a signal stopped ends with the signal's exit code."""
    first = not int(os.environ.get("RANK", 0))
    if result.reason.startswith("SIG"):
        if first:
            print(f"{result.reason}: saved at step {result.step}. Continue with: descend resume {run.folder}")
        raise SystemExit(128 + signal.Signals[result.reason])
    if not first:
        return
    if result.best is not None:
        _, _, watched = recipe.loop.watch.partition(" ")
        print(f"best validation {watched} {result.best:.4f} at step {result.best_step} of {result.step}")
    for line in tell_gain(run, recipe):
        print(line)
    if result.reason == "budget":
        print(f"stopped early: the time is used up. Continue with: descend resume {run.folder} --budget 10m")
    elif result.reason != "finished":
        print(f"stopped early: {result.reason}")
    print(f"run    {run.folder}")
    if result.unreported:
        raise Mistake(f"the run is whole, but its report could not be written: {result.unreported}")
    print(f"report {run.folder / 'report.html'}")


def print_recipes() -> None:
    """Every recipe: data, size, steps, and the time it takes on two cores."""
    rows = []
    for name in recipes.names():
        recipe = recipes.get(name)
        rows.append([name, recipe.parameters, recipe.loop.steps, recipe.takes, recipe.about])
    print(format_table(["recipe", "parameters", "steps", "time", "what it is"], rows))
