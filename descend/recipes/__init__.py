"""Recipes: named frozen values, one per file. `recipes/gpt2_pydoc.py` holds `RECIPE` and is called gpt2-pydoc."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from descend.errors import Mistake, nearest
from descend.kinds.recipe import Recipe


def names() -> list[str]:
    """Every recipe, by the files of this folder."""
    files = Path(__file__).parent.glob("*.py")
    return sorted(p.stem.replace("_", "-") for p in files if not p.stem.startswith("_"))


def get(name: str) -> Recipe:
    """The recipe of this name."""
    if name not in names():
        raise Mistake(f"no recipe {name!r}.{nearest(name, names())} descend train --list shows them all")
    return import_module(f"{__name__}.{name.replace('-', '_')}").RECIPE
