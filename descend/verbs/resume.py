"""descend resume: continue a run from its newest intact checkpoint, to the same bits as if it had never stopped."""

from __future__ import annotations

from pathlib import Path

from descend.engine.fit import Result
from descend.engine.run import Run
from descend.kinds.saved import from_json
from descend.verbs.start import continue_run
from descend.verbs.train import print_result


def resume(run: str | Path, quiet: bool = False) -> tuple[Run, Result]:
    """Continue a run that was interrupted or killed, from its newest intact checkpoint, to the same bits.

    Args:
        run: the run's folder.
        quiet: show no progress.

    Returns:
        The run, and how it ended.
    """
    found = Run.open(run)
    saved = found.recipe
    recipe = from_json(saved["values"], str(found.folder / "recipe.json"))
    return found, continue_run(saved["name"], recipe, found, saved["environment"]["threads"], quiet)


def command(run: str, /, *, quiet: bool = False) -> None:
    """Continue a run that was interrupted or killed.

    Args:
        run: the run's folder.
        quiet: show no progress.

    Examples:
        descend resume runs/gpt2-pydoc/20260101-120000
        torchrun --nproc-per-node 2 -m descend resume runs/two
    """
    found, result = resume(run, quiet)
    print_result(found, result, from_json(found.recipe["values"]))
