"""descend resume: continue a run from its newest intact checkpoint, to the same bits as if it had never stopped."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

from descend.engine.fit import Result
from descend.engine.run import Run
from descend.errors import Mistake
from descend.kinds.saved import read_saved
from descend.own_code import refuse_while_importing, use_code
from descend.verbs.flags import read_seconds
from descend.verbs.start import continue_run
from descend.verbs.train import print_result


def resume(
    run: str | Path,
    quiet: bool = False,
    accept_changes: bool = False,
    code: str | Path | ModuleType | None = None,
    budget: float | str = 0.0,
) -> tuple[Run, Result]:
    """Continue a run that was interrupted or killed, from its newest intact checkpoint, to the same bits.

    Args:
        run: the run's folder.
        quiet: show no progress.
        accept_changes: go on though data or environment are not those that the checkpoint was written with.
        code: the file or module of a recipe or model of your own, where it is not found by its name.
        budget: more time for a run whose --budget was used up, in seconds or as "10m"; 0: none.

    Returns:
        The run, and how it ended.
    """
    refuse_while_importing("resume")
    use_code(code)
    found = Run.open(run)
    if origin := found.recipe.get("compressed"):
        raise Mistake(f"{run} was made by descend compress and holds no state of a training; resume {origin}")
    name, recipe, threads = read_saved(found.recipe, found.folder / "recipe.json")
    more = read_seconds(str(budget)) if budget else 0.0
    return found, continue_run(name, recipe, found, threads, quiet, None, accept_changes, more)


def command(
    run: str, /, *, budget: str = "", quiet: bool = False, accept_changes: bool = False, code: str = ""
) -> None:
    """Continue a run that was interrupted or killed.

    Args:
        run: the run's folder.
        budget: more time for a run whose --budget was used up, such as 10m.
        quiet: show no progress.
        accept_changes: go on though data or environment have changed; what did is logged.
        code: the file of a recipe or model of your own, where it is not found by its name.

    Examples:
        descend resume runs/gpt2-pydoc/20260101-120000
        descend resume runs/demo --budget 10m
        torchrun --nproc-per-node 2 -m descend resume runs/two
    """
    found, result = resume(run, quiet, accept_changes, code, budget)
    print_result(found, result, read_saved(found.recipe, found.folder / "recipe.json").recipe)
