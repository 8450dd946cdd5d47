"""The best checkpoint as a public folder: weights, config, what goes with them, and a README.

    config.json  model.safetensors  tokenizer.json ..  preprocessor_config.json  README.md

It is written aside and renamed, so that it is there whole or not at all. What belongs to training (optimizer, random
states, checksums) stays in the run. An adapter is merged into the weights: W + (α / r) B A.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from torch import nn

from descend.errors import Mistake
from descend.exports.card import NAME, write_card
from descend.files import sync, write_text
from descend.weights.folder import PARTS
from descend.weights.pretrained import Pretrained, layout_of


@runtime_checkable
class Merges(Protocol):
    """A model with an adapter: one of its base's own kind whose weights do the same."""

    def merge(self) -> Any: ...


def merge_adapter(model: Any) -> Pretrained:
    """The model itself, or with its adapter in its weights."""
    return model.merge().eval() if isinstance(model, Merges) else model


def check_folder(out: Path, replace: bool) -> None:
    """Refuse a folder that cannot be made; only a model folder is replaced."""
    if not out.parent.is_dir():
        raise Mistake(f"--out {out}: the folder {out.parent} does not exist")
    if not out.exists() and not out.is_symlink():
        return
    if not replace:
        raise Mistake(f"--out {out} exists; give --replace to write it anew, or another name")
    if not out.is_dir() or out.is_symlink() or (out / "recipe.json").exists():
        raise Mistake(f"--out {out} is no model folder, so it is not replaced; give another name")
    if any(out.iterdir()) and not any((out / name).is_file() for name in ("config.json", PARTS)):
        raise Mistake(f"--out {out} holds other files than a model's, so it is not replaced; give another name")


def write_folder(model: Pretrained, run: Path, checkpoint: Path, out: Path) -> None:
    """Write the folder, and put it in its place."""
    aside, old = (out.with_name(f".{out.name}.{word}.{os.getpid()}") for word in ("new", "old"))
    try:
        model.save_pretrained(aside)
        add_card(model, run, checkpoint, aside, out.name)
        for path in aside.rglob("*"):
            sync(path)
        sync(aside)
        if out.exists():
            os.rename(out, old)
        os.rename(aside, out)
        sync(out.parent)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


def add_card(model: Pretrained, run: Path, checkpoint: Path, saved: Path, name: str) -> None:
    """README.md into a model folder that was saved and will be called `name`; one that came with the model stays."""
    if not (saved / NAME).exists():
        kind, layout = type(model).__name__, layout_of(type(model))
        write_text(saved / NAME, write_card(run, checkpoint, saved, name, kind, layout, count(model)))


def count(model: nn.Module) -> int:
    """Parameters."""
    return sum(p.numel() for p in model.parameters())
