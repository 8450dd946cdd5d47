"""descend merge: the adapter of a run worked into the weights of its base, as a plain model folder."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any, cast

from descend.errors import Mistake
from descend.exports.public_folder import add_card
from descend.models import load
from descend.models._adapted import Adapted, open_adapted
from descend.nn.adapters.lora import LowRankUpdates
from descend.own_code import use_code
from descend.weights.checkpoints import resolve_checkpoint


def merge(run: str | Path, out: str | Path, checkpoint: str | int = "best", base: str | Path = "") -> dict[str, Any]:
    """Write W + (α/r) B A for every matrix that LoRA changed, and all else as it was.

    The folder is there whole, or not at all.

    Args:
        run: a run below an adapter, or an adapter's folder, also one that PEFT wrote.
        out: the folder to write; it must not exist, or be empty.
        checkpoint: of a run: best, last or a step.
        base: the folder of the base, where the adapter's own settings do not lead to it.

    Returns:
        The folder, the kind of model and how many matrices were changed.
    """
    target, found = Path(out), resolve_checkpoint(run, checkpoint)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise Mistake(f"{target} exists and is not empty; give the name of a new folder")
    model = open_adapted(found, base) if base else load(found)
    if not isinstance(model, Adapted) or model.adapter is None:
        raise Mistake(f"{run} holds a {type(model).__name__} without an adapter: there is nothing to merge")
    merged = model.merged()
    aside = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        merged.save_pretrained(aside)
        add_card(merged, Path(run), found, aside, target.name)
        if target.exists():
            target.rmdir()
        os.replace(aside, target)
    except BaseException:
        shutil.rmtree(aside, ignore_errors=True)
        raise
    return {
        "folder": str(target),
        "model": type(merged).__name__,
        "matrices": len(cast("LowRankUpdates", model.adapter).places),
    }


def command(run: str, out: str, /, *, checkpoint: str = "best", base: str = "", code: str = "") -> None:
    """Work the LoRA adapter of a run into the weights of its base: a plain model folder, without an adapter.

    The merged model computes the same as fast as the base, and opens like any model here and in transformers.

    Args:
        run: a run below an adapter, or an adapter's folder, also one that PEFT wrote.
        out: the folder to write; it must not exist, or be empty.
        checkpoint: best, last or a step.
        base: the folder of the base, where the adapter's own settings do not lead to it.
        code: the file of a recipe or model of your own, where it is not found by its name.

    Examples:
        descend merge runs/lora-tasks/20260101-120000 merged/
        descend merge adapter-of-peft/ merged/ --base llama/
    """
    use_code(code)
    found = merge(run, out, checkpoint, base)
    print(f"{found['matrices']} matrices merged into a {found['model']}: {found['folder']}")
