"""What a run has to show at one of its checkpoints: its parts are built once, and take the weights of any of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import torch

from descend.contracts import Exhibit
from descend.engine import hardware
from descend.engine.fingerprint import take_fingerprint
from descend.engine.parts import Parts
from descend.engine.snapshots import read_film
from descend.errors import Mistake
from descend.kinds.memory import build_within_memory
from descend.kinds.recipe import Recipe
from descend.models import load
from descend.nn.quantized import rebuild
from descend.views.attempts import show_each
from descend.views.samples import show_progress
from descend.weights.checkpoints import resolve_checkpoint


def build_parts(recipe: Recipe) -> Parts:
    """The parts of a recipe, with the fingerprint of their data.

    The data are read in one thread: how sums over them round depends on the number of threads, which is chosen by what
    is read. A resume has to read the same numbers.
    """
    with hardware.one_thread():
        parts = build_within_memory(recipe)
    return replace(parts, fingerprint=take_fingerprint(recipe.files(), parts.save_extra, recipe.packages()))


def take_weights(parts: Parts, folder: Path) -> None:
    """The weights of a checkpoint into the model that the recipe makes."""
    try:
        saved = load(folder)
        if saved.kept_as:
            rebuild(parts.model, saved.kept_as)
            parts.model.kept_as = saved.kept_as
        parts.model.load_state_dict(saved.state_dict())
        parts.model.take_settings(saved.config)
        if parts.take_extra:
            parts.take_extra(folder)
    except RuntimeError as error:
        found = " ".join(str(error).partition("\n")[2].split())[:200]
        raise Mistake(
            f"{folder} does not hold the weights of the model that its run's recipe.json says: {found}"
        ) from None


def make_exhibits(parts: Parts, run: Path, checkpoint: Path | None = None) -> list[Exhibit]:
    """What the family shows with the best weights, or those of a checkpoint, and samples over the whole training."""
    make = parts.exhibits
    if make is None:
        return []

    def show() -> list[Exhibit]:
        take_weights(parts, checkpoint or resolve_checkpoint(run, "best"))
        parts.task.eval()
        with torch.no_grad():
            return make()

    kept = {"Samples over training": lambda: show_progress(read_film(run))} if parts.snapshot else {}
    return show_each({"Exhibits": show, **kept})
