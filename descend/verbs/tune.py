"""descend tune: search for good values of a recipe's flags; validation scores select, the test data is never read."""

from __future__ import annotations

import os
import shlex
import shutil
import time
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import torch
import tyro

from descend import recipes
from descend.engine import checkpoint
from descend.engine.fit import Display, Result
from descend.engine.run import Run
from descend.errors import Mistake
from descend.files import field, read_json, write_json
from descend.kinds.recipe import Recipe
from descend.kinds.saved import from_json, to_json
from descend.own_code import refuse_while_importing
from descend.report import write_report
from descend.report.study import write_study
from descend.tuning.space import choose_space, find_difference, read_space, type_values
from descend.tuning.study import Pruned, Pruner, Study, StudyPlan, Train
from descend.tuning.suggest import Sampler
from descend.verbs.asked import find_recipe, name_recipe, read_asked
from descend.verbs.flags import parse, read_seconds
from descend.verbs.start import continue_run, run_recipe
from descend.verbs.train import TrainFlags
from descend.verbs.trials import Shown, print_outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

HELP = """usage: descend tune RECIPE [--search NAME=WHERE ...] [--flags]
       descend tune --resume DIR [--trials N] [--budget 10m] [--quiet] [--json]

Train a recipe many times with different values and keep the best. Every trial is a run in DIR/trials. Bad ones are
stopped early. A search that was interrupted or killed continues when the same command is given again.

  --search optim.lr=1e-4..1e-1:log   a range, sampled in logarithm (without :log: uniformly)
  --search model.width=32,64,128     one of these; give --search once for each flag that may vary
                                     (default: the learning rate around the recipe's, and the batch)
  --sampler tpe                      grid, random, tpe, or gp (Gaussian process with expected improvement)
  --pruner median                    median, halving or none: what stops a bad trial
  --trials 30                        how many; a grid without --trials is tried in full
  --budget 10m                       time limit of this command; the next one continues what is unfinished
  --out DIR                          the study's folder (default: runs/RECIPE-tune/TIME)
  --replace                          replace the study that is in --out

The other flags are those of `descend train` and hold for every trial.

examples
  descend tune lenet-digits --steps 200 --trials 20 --out runs/search
  descend tune gpt2-pydoc --search optim.lr=3e-4..3e-2:log --search model.width=96,192 --sampler gp --budget 1h
  descend tune --resume runs/search --trials 40
"""
SAME = ("name", "search", "sampler", "pruner", "values")  # what makes a command the same study


def tune(
    recipe: str | Recipe,
    values: Mapping[str, Any] | None = None,
    out: str | Path | None = None,
    search: tuple[str, ...] | list[str] = (),
    trials: int = 0,
    sampler: Sampler = "tpe",
    pruner: Pruner = "median",
    budget: float | str = 0.0,
    replace: bool = False,
    quiet: bool = False,
) -> dict[str, Any]:
    """Search for good values of a recipe's flags. Validation scores select; the test data is never read.

    Args:
        recipe: its name, its file, or your own Recipe.
        values: other values of the recipe, for every trial, by the names of its flags: {"steps": 500}.
        out: the study's folder; None: runs/RECIPE-tune/TIME.
        search: flags that vary: "optim.lr=1e-4..1e-1:log", "model.width=32,64"; none: the learning rate and the batch.
        trials: how many; 0: 30, or the whole grid.
        sampler: what chooses the next values: grid, random, tpe or gp.
        pruner: what stops a bad trial early: median, halving or none.
        budget: longest time of this call, in seconds or as "10m"; 0: no limit.
        replace: replace the study that is in `out`.
        quiet: show no progress.

    Returns:
        What `descend tune --json` prints: trials, best, importance, command.
    """
    refuse_while_importing("tune")
    name = recipe if isinstance(recipe, str) else name_recipe(recipe)
    asked = find_recipe(recipe, values)
    order = TuneFlags(asked, tuple(search), trials, sampler, pruner, str(budget or ""), str(out or ""), replace, quiet)
    return begin_study(name, order)


def begin_study(name: str, order: TuneFlags) -> dict[str, Any]:
    """The study that an order describes, from its start or from where it stands."""
    if order.trials < 0:
        raise Mistake(f"--trials {order.trials}: at least 1, or 0 for the default")
    asked = {
        "name": name,
        "search": list(order.search) or choose_space(order.recipe),
        "sampler": order.sampler,
        "pruner": order.pruner,
        "trials": order.trials,
        "values": to_json(order.recipe),
        "descend": version("descend"),
        "started": time.strftime("%Y-%m-%d %H:%M:%S"),
    }
    make_plan(asked, order.recipe).trials(0)  # a mistake in the space is reported before anything is written
    folder = (
        Path(order.out)
        if order.out
        else Path("runs") / f"{recipes.shorten(name)}-tune" / time.strftime("%Y%m%d-%H%M%S")
    )
    return search_in(folder, asked, order.budget, order.replace, order.quiet)


def resume_study(folder: str | Path, trials: int = 0, budget: str = "", quiet: bool = False) -> dict[str, Any]:
    """Go on with the study in this folder, up to `trials` trials (0: as many as were asked for before)."""
    asked = read_study(Path(folder))
    if asked is None:
        raise Mistake(f"{folder} holds no study (no study.json); start one with descend tune RECIPE --out {folder}")
    return search_in(Path(folder), {**asked, "trials": trials or asked["trials"]}, budget, False, quiet)


def read_study(folder: Path) -> dict[str, Any] | None:
    path = folder / "study.json"
    return read_json(path) if path.exists() else None


def make_plan(asked: dict[str, Any], recipe: Recipe) -> StudyPlan:
    loop = recipe.loop
    dimensions = read_space(asked["search"], recipe)
    return StudyPlan(dimensions, asked["sampler"], asked["pruner"], loop.watch, loop.seed, loop.steps)


def search_in(folder: Path, asked: dict[str, Any], budget: str, replace: bool, quiet: bool) -> dict[str, Any]:
    """Lock the folder, agree with what is in it, run, and write the page."""
    if int(os.environ.get("WORLD_SIZE", 1)) > 1:
        raise Mistake("descend tune runs its trials one after another in one process; start it without torchrun")
    limit = read_seconds(budget) if budget else 0.0
    folder.mkdir(parents=True, exist_ok=True)
    with Run(folder).locked():
        write_study_file(folder, asked, replace)
        recipe = from_json(asked["values"], str(folder / "study.json"))
        plan = make_plan(asked, recipe)
        study, trials = Study(folder, plan), plan.trials(asked["trials"])
        make = make_builder(asked["name"], recipe, plan)
        shown = Shown(study, trials, quiet)
        state = study.run(trials, make, make_trainer(recipes.shorten(asked["name"])), shown.begin, shown.report, limit)
        found = summarize_study(study, asked, recipe, make, state)
        write_study(folder, found)
    return found


def write_study_file(folder: Path, asked: dict[str, Any], replace: bool) -> None:
    """Write study.json, or see that the study that is there is the one that was asked for."""
    there, where = read_study(folder), str(folder / "study.json")
    others = [p.name for p in folder.iterdir() if p.name != "lock" and not p.name.startswith(".")]
    if there is None and others:
        raise Mistake(f"{folder} is not empty and not a study; choose another --out")
    if there is not None and replace:
        for path in [p for p in folder.iterdir() if p.name != "lock"]:
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    elif there is not None:
        other = [key for key in SAME if there[key] != asked[key]]
        if "values" in other and from_json(there["values"], where) == from_json(asked["values"]):
            other.remove("values")  # written by another version, by other names
        if other:
            what = "recipe" if other[0] == "values" else other[0]
            raise Mistake(f"{folder} holds a study with a different {what}; choose another --out, or give --replace")
        asked = {**asked, "started": there["started"], "descend": there["descend"]}
    write_json(folder / "study.json", asked)


def make_builder(name: str, recipe: Recipe, plan: StudyPlan) -> Callable[[dict[str, Any]], Recipe]:
    """From values to a recipe, by the flags of `descend train`."""

    def make(values: dict[str, Any]) -> Recipe:
        flags = type_values(plan.dimensions, values)
        return read_asked(TrainFlags, recipe, flags, f"descend train {name}").recipe

    return make


def make_trainer(name: str) -> Train:
    """How a trial is trained: as `descend train` and `descend resume` do it."""
    threads = torch.get_num_threads()

    def train(recipe: Recipe, folder: Path, display: Display) -> Result:
        torch.set_num_threads(threads)  # as at the start of a process, not as the trial before left them
        run = Run(folder)
        try:
            if checkpoint.names(run.checkpoints):
                began = field(run.recipe, "environment.threads", int, folder / "recipe.json")
                return continue_run(name, recipe, run, began, display=display)
            shutil.rmtree(folder, ignore_errors=True)
            return run_recipe(name, recipe, folder, display=display)[1]
        except Pruned:
            last = run.lines()[-1]
            run.log({"step": last["step"], "time": last["time"], "event": "pruned"})
            write_report(folder, [])
            raise

    return train


def summarize_study(
    study: Study, asked: dict[str, Any], recipe: Recipe, make: Callable[[dict[str, Any]], Recipe], state: str
) -> dict[str, Any]:
    """The study as JSON."""
    rows, best, command = study.rows(), study.best(), ""
    if best is not None and recipes.exists(asked["name"]):
        flags = find_difference(recipes.get(asked["name"]), make(best.params))
        command = shlex.join(["descend", "train", asked["name"], *flags])
    plan = study.plan
    return {
        "study": str(study.folder),
        "recipe": asked["name"],
        "state": state,
        "watch": plan.watch,
        "sampler": plan.sampler,
        "pruner": plan.pruner,
        "seed": plan.seed,
        "search": [d.describe() for d in plan.dimensions],
        "wanted": plan.trials(asked["trials"]),
        "best": None if best is None else rows[best.number],
        "command": command,
        "importance": study.importance(),
        "trials": rows,
    }


@dataclass(frozen=True)
class TuneFlags:
    """What to search, where to, and for how long."""

    recipe: Annotated[Any, tyro.conf.arg(name="")]
    search: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """A flag that varies: NAME=LOW..HIGH, NAME=LOW..HIGH:log or NAME=A,B,C; may be given several times."""
    trials: int = 0
    """How many trials; 0: 30, or the whole grid."""
    sampler: Sampler = "tpe"
    """What chooses the next values."""
    pruner: Pruner = "median"
    """What stops a bad trial."""
    budget: str = ""
    """Longest time of this command, such as 90s, 5m or 2h."""
    out: str = ""
    """The study's folder; empty: runs/RECIPE-tune/TIME."""
    replace: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Replace the study that is in --out."""
    quiet: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Show no progress."""
    json: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Print JSON."""


def main(args: list[str]) -> None:
    """The command: its flags depend on the recipe."""
    if not args or args[0] in ("-h", "--help"):
        print(HELP, end="")
        return
    if args[0] == "--resume":
        parse(resume_command, args[1:], "descend tune --resume")
        return
    name = args[0]
    if name.startswith("-"):
        raise Mistake("name the recipe first: descend tune RECIPE --flags; or descend tune --resume DIR")
    order = read_asked(TuneFlags, recipes.get(name), args[1:], f"descend tune {name}")
    print_outcome(begin_study(name, order), order.json)


def resume_command(
    folder: str, /, *, trials: int = 0, budget: str = "", quiet: bool = False, json: bool = False
) -> None:
    """Go on with a search.

    Args:
        folder: the study's folder.
        trials: how many trials in all; 0: as many as were asked for.
        budget: longest time of this command.
        quiet: show no progress.
        json: print JSON.

    Examples:
        descend tune --resume runs/search --trials 40
    """
    print_outcome(resume_study(folder, trials, budget, quiet), json)
