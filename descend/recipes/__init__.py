"""Recipes: named frozen values, one per file. `recipes/gpt2_pydoc.py` holds `RECIPE` and is called gpt2-pydoc.

A recipe of the user's own is a file that holds `RECIPE`, too, and is called by its path: `descend train my_recipe.py`.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from descend.errors import Mistake, nearest
from descend.kinds.recipe import Recipe
from descend.own_code import import_file


def names() -> list[str]:
    """Every recipe, by the files of this folder."""
    files = Path(__file__).parent.glob("*.py")
    return sorted(p.stem.replace("_", "-") for p in files if not p.stem.startswith("_"))


def get(name: str) -> Recipe:
    """The recipe of this name, or in this file of the user's."""
    if is_file(name):
        return read_recipe(name)
    if name not in names():
        raise Mistake(
            f"no recipe {name!r}.{nearest(name, names())} descend train --list shows them all;"
            " one of your own is a file, such as my_recipe.py"
        )
    return import_module(f"{__name__}.{name.replace('-', '_')}").RECIPE


def is_file(name: str) -> bool:
    """Whether a recipe is called by its path."""
    return name.endswith(".py")


def exists(name: str) -> bool:
    """Whether there is a recipe of this name, or this file."""
    return name in names() or (is_file(name) and Path(name).is_file())


def shorten(name: str) -> str:
    """The name of a recipe's runs: my/net_on_photos.py -> net-on-photos."""
    return Path(name).stem.replace("_", "-") if is_file(name) else name


def read_recipe(path: str) -> Recipe:
    """RECIPE of a file of the user's."""
    found = vars(import_file(path)).get("RECIPE")
    if not isinstance(found, Recipe):
        wrong = "has no RECIPE" if found is None else f"RECIPE is a {type(found).__name__}, not a recipe"
        raise Mistake(f"{path}: {wrong}; write RECIPE = followed by a recipe of descend.kinds, such as LearnTable(...)")
    return found
