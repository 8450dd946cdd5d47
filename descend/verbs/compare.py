"""A run beside what it is to be compared with: the same network from scratch, for as many steps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from descend.engine.fit import Result
from descend.engine.run import Run
from descend.errors import Mistake
from descend.kinds.recipe import Recipe
from descend.verbs.held_out import EVENT
from descend.verbs.start import run_recipe

FACT, SUFFIX = "from scratch", "-from-scratch"


def run_compared(
    name: str, recipe: Recipe, out: Path, overwrite: bool, budget: float, quiet: bool
) -> tuple[Run, Result]:
    """Train a recipe, after its baseline where it asks for one (in a folder of its own, beside this one)."""
    baseline = recipe.baseline()
    if baseline is None:
        return run_recipe(name, recipe, out, overwrite, budget, quiet)
    beside = name_baseline(out)
    run, result = run_recipe(f"{name}{SUFFIX}", baseline, beside, overwrite, budget, quiet)
    if result.reason.startswith("SIG"):
        return run, result
    scores = ", ".join(f"{kind} {value:.4f}" for kind, value in read_scores(run, recipe).items())
    return run_recipe(name, recipe, out, overwrite, budget, quiet, facts={FACT: f"{scores} ({beside})"})


def name_baseline(folder: Path) -> Path:
    """Where the run from scratch is."""
    return folder.with_name(folder.name + SUFFIX)


def read_scores(run: Run, recipe: Recipe) -> dict[str, float]:
    """The watched score: the best on the validation data, and that of the best checkpoint on the test data."""
    higher, watched = recipe.loop.watched
    lines = run.lines()
    valid = [line["valid"][watched] for line in lines if isinstance(line.get("valid"), dict)]
    tested = [line["scores"] for line in lines if line.get("event") == EVENT and watched in line.get("scores", {})]
    found = {f"validation {watched}": max(valid) if higher else min(valid)} if valid else {}
    return found | ({f"test {watched}": float(tested[-1][watched])} if tested else {})


def tell_gain(run: Run, recipe: Recipe) -> list[str]:
    """Each score beside that from scratch, and the difference; nothing for a run without a comparison."""
    facts: dict[str, Any] = run.recipe.get("facts", {})
    if FACT not in facts:
        return []
    try:
        before = read_scores(Run.open(name_baseline(run.folder)), recipe)
    except Mistake:
        return [f"from scratch: {facts[FACT]}"]
    return [
        f"{kind} {value:.4f}, from scratch {before[kind]:.4f} ({value - before[kind]:+.4f})"
        for kind, value in read_scores(run, recipe).items()
        if kind in before
    ]
