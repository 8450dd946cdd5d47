"""From a recipe to a running fit, new or resumed: what `train` and `resume` share."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from descend import recipes
from descend.diagnosis.live import Watcher
from descend.engine import hardware
from descend.engine.distributed import World, join, tell_lost_processes
from descend.engine.evaluation import check_watched
from descend.engine.fit import Display, Result, fit
from descend.engine.parts import Parts
from descend.engine.precision import choose_precision, name_precision
from descend.engine.progress import Progress, Quiet
from descend.engine.run import Run
from descend.kinds.recipe import Recipe
from descend.kinds.saved import to_json
from descend.report import write_report
from descend.report.showing import build_parts, make_exhibits, take_weights
from descend.verbs.announce import announce
from descend.verbs.held_out import log_scores, score_test
from descend.views.attempts import name_reason
from descend.weights.checkpoints import resolve_checkpoint


def describe(name: str, recipe: Recipe, parts: Parts, threads: int, precision: str = "float32") -> dict[str, Any]:
    """The content of recipe.json."""
    return {
        "name": name,
        "about": tell_about(name, recipe, parts),
        "descend": version("descend"),
        "started": time.strftime("%Y-%m-%d %H:%M:%S"),
        "values": to_json(recipe),
        "model": to_json(parts.model.config),  # as built: with the sizes that the data give
        "environment": {
            **hardware.describe_environment(hardware.find_device(recipe.loop.device)),
            "threads": threads,
            "precision": precision,
        },
        "facts": {**parts.facts, "unit": parts.unit, "parameters": sum(p.numel() for p in parts.model.parameters())},
    }


def tell_about(name: str, recipe: Recipe, parts: Parts) -> str:
    """What is trained on what: a recipe's own words hold for its own data; others are named as they are."""
    if name in recipes.names():
        own = to_json(recipe.data) == to_json(recipes.get(name).data)
    else:
        own = not recipe.files() or not name.startswith("own-")
    if own and recipe.about:
        return recipe.about
    target = f", predicting {parts.facts['predicts']}" if "predicts" in parts.facts else ""
    data = f" on {parts.facts['data']}" if "data" in parts.facts else ""
    return f"{type(parts.model).__name__}{data}{target}"


@tell_lost_processes()
@hardware.tell_unsupported()
def run_recipe(
    name: str,
    recipe: Recipe,
    out: Path,
    overwrite: bool = False,
    budget: float = 0.0,
    quiet: bool = False,
    display: Display | None = None,
    facts: dict[str, Any] | None = None,
) -> tuple[Run, Result]:
    """Train a recipe into a new folder; shown as usual, or on a display of the caller's. `facts` join the run's own."""
    world = join()
    hardware.keep_memory()
    where = hardware.find_device(recipe.loop.device)
    parts = build_parts(recipe)
    parts = replace(parts, facts={**parts.facts, **(facts or {})})
    check_watched(parts, recipe.loop)
    threads = hardware.choose_threads(recipe.loop.threads, parts.task, parts.units_per_batch)
    torch.set_num_threads(threads)
    precision = name_precision(choose_precision(recipe.loop, parts, where))
    if world.first:
        run = Run.create(out, describe(name, recipe, parts, threads, precision), overwrite)
    world.wait()
    run = Run.open(out)
    chosen = replace(recipe, loop=replace(recipe.loop, precision=precision))
    return run, _fit(name, chosen, parts, run, world, False, budget, quiet, display)


@tell_lost_processes()
@hardware.tell_unsupported()
def continue_run(
    name: str,
    recipe: Recipe,
    run: Run,
    threads: int,
    quiet: bool = False,
    display: Display | None = None,
    accept_changes: bool = False,
    budget: float = 0.0,
) -> Result:
    """Continue a run from its newest intact checkpoint, with the threads it began with (they shape rounding).

    `budget` adds seconds to a run whose time was used up.
    """
    world = join()
    hardware.keep_memory()
    torch.set_num_threads(threads)
    return _fit(name, recipe, build_parts(recipe), run, world, True, budget, quiet, display, accept_changes)


def _fit(
    name: str,
    recipe: Recipe,
    parts: Parts,
    run: Run,
    world: World,
    resume: bool,
    budget: float,
    quiet: bool,
    display: Display | None,
    accept_changes: bool = False,
) -> Result:
    own = Progress(name, recipe.loop.steps, parts.unit, recipe.loop.watch)
    with nullcontext(display) if display else Quiet() if quiet or not world.first else own as shown:
        if not world.first:
            return fit(parts, recipe.loop, recipe.schedule, run, shown, world, resume, budget, None, accept_changes)
        where, loop = hardware.find_device(recipe.loop.device), recipe.loop
        for line in announce(parts.facts, where, torch.get_num_threads(), loop.precision):
            shown.message(line)
        with run.locked():
            watch = Watcher(run.recipe)
            result = fit(parts, recipe.loop, recipe.schedule, run, shown, world, resume, budget, watch, accept_changes)
    if not result.reason.startswith("SIG"):
        build = lambda: parts if world.size == 1 else recipe.build()
        # A trial of a search, which has a display of its own, is chosen by its validation score alone.
        return replace(result, unreported=report_run(build, run, None if display else recipe))
    return result


def report_run(build: Callable[[], Parts], run: Run, tested: Recipe | None) -> str:
    """Score the test data of a recipe, write the report; returns why it could not be written. The run is whole without
    it."""
    try:
        write_report(run.folder, [])  # first without: making the exhibits takes time, and the curves are there already
        parts = build()
        parts.task.to("cpu")  # where the exhibits and the test data are
        if tested is not None:
            judge_best(tested, parts, run)
        write_report(run.folder, make_exhibits(parts, run.folder))
    except Exception as error:  # a full disk above all, but whatever it is: the result of the run has to be told
        return name_reason(error)
    return ""


def judge_best(recipe: Recipe, parts: Parts, run: Run) -> None:
    """Score the best checkpoint on the held-out test data; what goes wrong is told in the report."""
    try:
        folder = resolve_checkpoint(run.folder, "best")
        take_weights(parts, folder)
        line = score_test(run, recipe, parts.task, folder).line
    except Exception as error:
        said = f"the test data could not be scored: {name_reason(error)}"
        line = {"step": max((line["step"] for line in run.lines()), default=0), "event": "warning", "said": said}
    log_scores(run, line)
