"""From a recipe to a running fit, new or resumed: what `train` and `resume` share."""

from __future__ import annotations

import time
from contextlib import nullcontext
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from descend.contracts import Exhibit
from descend.diagnosis.live import Watcher
from descend.engine import hardware
from descend.engine.distributed import World, join
from descend.engine.fit import Display, Result, fit
from descend.engine.parts import Parts
from descend.engine.precision import choose_precision, name_precision
from descend.engine.progress import Progress, Quiet
from descend.engine.run import Run
from descend.kinds.recipe import Recipe
from descend.kinds.saved import to_json
from descend.models import load
from descend.report import write_report


def describe(name: str, recipe: Recipe, parts: Parts, threads: int, precision: str = "float32") -> dict[str, Any]:
    """The content of recipe.json."""
    return {
        "name": name,
        "about": recipe.about,
        "descend": version("descend"),
        "started": time.strftime("%Y-%m-%d %H:%M:%S"),
        "values": to_json(recipe),
        "environment": {**hardware.describe_environment(), "threads": threads, "precision": precision},
        "facts": {**parts.facts, "unit": parts.unit, "parameters": sum(p.numel() for p in parts.model.parameters())},
    }


def run_recipe(
    name: str,
    recipe: Recipe,
    out: Path,
    overwrite: bool = False,
    budget: float = 0.0,
    quiet: bool = False,
    display: Display | None = None,
) -> tuple[Run, Result]:
    """Train a recipe into a new folder; shown as usual, or on a display of the caller's."""
    world = join()
    hardware.keep_memory()
    if recipe.loop.threads:  # before anything is computed: rounding follows the threads
        torch.set_num_threads(recipe.loop.threads)
    parts = recipe.build()
    threads = hardware.choose_threads(recipe.loop.threads, parts.task, parts.units_per_batch)
    torch.set_num_threads(threads)
    precision = name_precision(choose_precision(recipe.loop, parts, hardware.find_device()))
    if world.first:
        run = Run.create(out, describe(name, recipe, parts, threads, precision), overwrite)
    world.wait()
    run = Run.open(out)
    chosen = replace(recipe, loop=replace(recipe.loop, precision=precision))
    return run, _fit(name, chosen, parts, run, world, False, budget, quiet, display)


def continue_run(
    name: str, recipe: Recipe, run: Run, threads: int, quiet: bool = False, display: Display | None = None
) -> Result:
    """Continue a run from its newest intact checkpoint, with the threads it began with (they shape rounding)."""
    world = join()
    hardware.keep_memory()
    torch.set_num_threads(threads)
    return _fit(name, recipe, recipe.build(), run, world, True, 0.0, quiet, display)


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
) -> Result:
    own = Progress(name, recipe.loop.steps, parts.unit, recipe.loop.watch)
    with nullcontext(display) if display else Quiet() if quiet or not world.first else own as shown:
        if not world.first:
            return fit(parts, recipe.loop, recipe.schedule, run, shown, world, resume, budget)
        with run.locked():
            watch = Watcher(run.recipe, run.lines())
            result = fit(parts, recipe.loop, recipe.schedule, run, shown, world, resume, budget, watch)
    if not result.reason.startswith("SIG"):
        write_report(run.folder, [])  # first without: making the exhibits may fail, and the curves are there already
        write_report(run.folder, make_exhibits(parts if world.size == 1 else recipe.build(), run))
    return result


def make_exhibits(parts: Parts, run: Run) -> list[Exhibit]:
    """What the family shows, made with the best weights."""
    if parts.exhibits is None:
        return []
    parts.model.load_state_dict(load(run.folder).state_dict())
    parts.task.eval()
    with torch.no_grad():
        return parts.exhibits()


def with_steps(recipe: Recipe, steps: int) -> Recipe:
    """The recipe with another number of steps, evaluated and saved at least five times."""
    often = max(1, min(recipe.loop.eval_every, steps // 5))
    return replace(
        recipe,
        loop=replace(recipe.loop, steps=steps, eval_every=often, save_every=min(recipe.loop.save_every, max(often, 1))),
    )
