"""What is asked for: a recipe by its name or file, with other values by flags or by a dict, and a model of one's own.

What a recipe tells in steps of its schedule is a share of the run: with other --steps it is stretched along, unless a
flag of the schedule is given.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from descend import models, recipes
from descend.errors import Mistake, nearest
from descend.kinds.adapters import ADAPTERS
from descend.kinds.changes import change
from descend.kinds.length import shorten_average, stretch, with_steps
from descend.kinds.recipe import Recipe
from descend.own_code import get_named
from descend.verbs.flags import parse

Flags = TypeVar("Flags")
Values = Mapping[str, Any]


def find_recipe(recipe: str | Recipe, values: Values | None = None) -> Recipe:
    """The recipe of a name, of a file, or the caller's own, with other values by the names of its flags."""
    found = recipes.get(recipe) if isinstance(recipe, str) else recipe
    if not isinstance(found, Recipe):
        raise Mistake(f"{type(recipe).__name__} is not a recipe; give its name, its file, or a recipe of descend.kinds")
    if not isinstance(values, Mapping | None):
        raise Mistake(f"values {values!r}: give a dict by the names of the flags, such as {{'optim.lr': 0.1}}")
    given = {name.lstrip("-").replace("-", "_"): value for name, value in (values or {}).items()}
    for name, put in STRUCTURE.items():
        if isinstance(own := given.get(name), str):
            found, given = put(found, own), {k: v for k, v in given.items() if k != name}
    return fit_schedule(found, change(found, given), given)


def name_recipe(recipe: str | Recipe) -> str:
    """What its runs are called."""
    return recipes.shorten(recipe) if isinstance(recipe, str) else f"own-{type(recipe).__name__.lower()}"


def read_asked(make: Callable[[Recipe], Flags], recipe: Recipe, args: list[str], prog: str) -> Flags:
    """The flags of a verb, whose field `recipe` holds the recipe with the values that the flags give it."""
    for name, put in STRUCTURE.items():
        word, args = take_word(args, name)
        recipe = put(recipe, word) if word else recipe
    flags: Any = parse(type(make(recipe)), args, prog, default=make(recipe))
    return replace(flags, recipe=fit_schedule(recipe, flags.recipe, name_flags(args)))


def name_flags(args: list[str]) -> list[str]:
    """The flags among the arguments, without dashes and values."""
    return [word.partition("=")[0].lstrip("-") for word in args if word.startswith("--")]


def fit_schedule(before: Recipe, after: Recipe, given: Any) -> Recipe:
    """The recipe with schedule and average stretched to its number of steps, unless they were given."""
    factor = after.loop.steps / before.loop.steps
    if factor == 1:
        return after
    if not gives_average(given):
        after = replace(after, loop=shorten_average(after.loop, factor))
    return after if gives_schedule(given) else replace(after, schedule=stretch(after.schedule, factor))


def gives_schedule(given: Any) -> bool:
    """Whether one of these flags is the schedule's."""
    return any(name.partition(".")[0] == "schedule" for name in given)


def gives_average(given: Any) -> bool:
    """Whether one of these flags is of the average of the weights."""
    return "ema" in given or "raw" in given


def shorten_run(recipe: Recipe, steps: int, given: Any) -> Recipe:
    """The recipe for the steps that fit into a time; a schedule or an average that was given stays."""
    shorter = with_steps(recipe, steps)
    if gives_average(given):
        shorter = replace(shorter, loop=replace(shorter.loop, ema=recipe.loop.ema))
    return replace(shorter, schedule=recipe.schedule) if gives_schedule(given) else shorter


def take_word(args: list[str], name: str) -> tuple[str, list[str]]:
    """The word behind --model or --adapter, and the other arguments."""
    for index, word in enumerate(args):
        if word.startswith(f"--{name}="):
            return word.partition("=")[2], [*args[:index], *args[index + 1 :]]
        if word == f"--{name}":
            value = args[index + 1] if index + 1 < len(args) else ""
            if not value or value.startswith("-"):
                raise Mistake(f"--{name} needs a value: {NEEDED[name]}")
            return value, [*args[:index], *args[index + 2 :]]
    return "", args


def replace_model(recipe: Recipe, name: str) -> Recipe:
    """The recipe with another model: "my_package.my_net:MyConfig", "my_net.py:MyConfig", or a family such as "vit"."""
    if not dataclasses.is_dataclass(recipe.model):
        raise Mistake(f"--model {name}: this recipe has no model that can be replaced")
    if ":" not in name and name.replace("-", "_") not in models.names():
        known = nearest(name, models.names())
        raise Mistake(f"--model {name}: there is no such family.{known} Of your own: --model my_net.py:MyConfig")
    try:
        kind = get_named(name) if ":" in name else models.config_class(name.replace("-", "_"))
        config: Any = models.check_own_config(kind)
    except Mistake as mistake:
        raise Mistake(f"--model {mistake}") from None
    return replace(recipe, model=config(), about="", parameters=0, takes="")  # what was said of the other model


def replace_adapter(recipe: Recipe, name: str) -> Recipe:
    """The recipe with another adapter beside its frozen model: "lora", "prefix", ..; "none": the weights learn."""
    if not hasattr(recipe, "adapter"):
        raise Mistake(f"--adapter {name}: this recipe trains no adapter; instruct-tasks and lora-tasks do")
    if name not in ADAPTERS and name != "none":
        raise Mistake(f"--adapter {name}: choose {', '.join(ADAPTERS)}, or none.{nearest(name, list(ADAPTERS))}")
    chosen = None if name == "none" else ADAPTERS[name]()
    changed: dict[str, Any] = {"adapter": chosen, "about": "", "parameters": 0, "takes": ""}
    return replace(recipe, **changed)


STRUCTURE = {"model": replace_model, "adapter": replace_adapter}
"""Flags that replace a part of the recipe by another, whose own flags follow."""
NEEDED = {
    "model": "a config of your own, such as my_net:MyConfig or my_net.py:MyConfig",
    "adapter": f"{', '.join(ADAPTERS)}, or none",
}
