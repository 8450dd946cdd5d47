"""descend lr-find: let the learning rate grow from batch to batch, and see where the loss falls fastest."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import torch
import tyro

from descend import recipes
from descend.engine import hardware
from descend.engine.distributed import World
from descend.engine.lr_range import Curve, sweep
from descend.engine.training import Training
from descend.errors import Mistake
from descend.kinds.memory import build_within_memory
from descend.kinds.recipe import Recipe
from descend.report.sweep import draw_figure, draw_spark, make_sweep_page
from descend.tuning.space import find_difference
from descend.verbs.asked import find_recipe, read_asked
from descend.verbs.lab import check_out

HELP = """usage: descend lr-find RECIPE [--flags]

Train a few batches while the learning rate grows exponentially, and suggest a rate: the smaller of the one where the
smoothed loss falls fastest and a tenth of the one where it is lowest. This training is discarded.
The other flags are those of `descend train`.

  --low 1e-6      first rate
  --high 10       last rate
  --points 100    batches
  --out FILE      the curve as .html, .png or .svg
  --json          print JSON

examples
  descend lr-find lenet-digits
  descend lr-find gpt2-pydoc --model.width 128 --out curve.html
"""


def lr_find(
    recipe: str | Recipe,
    values: Mapping[str, Any] | None = None,
    low: float = 1e-6,
    high: float = 10.0,
    points: int = 100,
) -> Curve:
    """Learning-rate finder: the loss while the rate grows exponentially from batch to batch, and a suggested rate.

    Args:
        recipe: its name, its file, or your own Recipe.
        values: other values of the recipe, by the names of its flags: {"model.width": 64}.
        low: the first rate.
        high: the last rate.
        points: how many batches.
    """
    asked = find_recipe(recipe, values)
    hardware.keep_memory()
    parts = build_within_memory(asked)
    torch.set_num_threads(hardware.choose_threads(asked.loop.threads, parts.task, parts.units_per_batch))
    return sweep(Training(parts, asked.loop, asked.schedule, World()), low, high, points)


@dataclass(frozen=True)
class SweepFlags:
    """What to sweep."""

    recipe: Annotated[Any, tyro.conf.arg(name="")]
    low: float = 1e-6
    """First rate."""
    high: float = 10.0
    """Last rate."""
    points: int = 100
    """Batches."""
    out: str = ""
    """Write the curve here: .html, .png or .svg."""
    json: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Print JSON."""


def main(args: list[str]) -> None:
    """The command: its flags depend on the recipe."""
    if not args or args[0] in ("-h", "--help"):
        print(HELP, end="")
        return
    name = args[0]
    if name.startswith("-"):
        raise Mistake("name the recipe first: descend lr-find RECIPE --flags; descend train --list shows them")
    asked = read_asked(SweepFlags, recipes.get(name), args[1:], f"descend lr-find {name}")
    if asked.out:
        check_out(Path(asked.out))
    curve = lr_find(asked.recipe, None, asked.low, asked.high, asked.points)
    if asked.out:
        save_curve(recipes.shorten(name), curve, Path(asked.out))
    if asked.json:
        print(json.dumps({"recipe": name, **asdict(curve), "suggestion": curve.suggestion}, indent=1))
    else:
        print_curve(name, asked, curve)


def save_curve(name: str, curve: Curve, out: Path) -> None:
    """The page, or the figure alone."""
    if out.suffix == ".html":
        out.write_text(make_sweep_page(name, curve), encoding="utf-8")
    else:
        draw_figure(name, curve).savefig(out, dpi=160)


def print_curve(name: str, asked: SweepFlags, curve: Curve) -> None:
    """The curve in a few lines, and what follows."""
    if not curve.smoothed:
        raise Mistake(
            f"the loss is not finite at the first rate, {asked.low:g}; look at the data or give a lower --low"
        )
    print(draw_spark(curve, unicode="utf" in (sys.stdout.encoding or "").lower()))
    if curve.suggestion is None:
        print(
            f"the loss never fell between {curve.rates[0]:.1e} and {curve.rates[-1]:.1e}; try another --low or --high"
        )
    else:
        turn = "it still falls at the last rate" if curve.turn is None else f"it is lowest at {curve.turn:.2e}"
        print(f"the loss falls fastest at {curve.steepest:.2e}; {turn}")
        rate = f"--optim.lr {curve.suggestion:.2g}"
        own = " ".join(find_difference(recipes.get(name), asked.recipe))
        print(f"suggested: {rate}   (descend train {name} {own + ' ' if own else ''}{rate})")
    if asked.out:
        print(f"written: {asked.out}")
