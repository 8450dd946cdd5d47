"""descend plan: check the data, measure a few steps, and say what a run will cost before it starts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from descend import recipes
from descend.kinds.recipe import Recipe
from descend.report.sheet import check_png
from descend.report.training_sheet import write_sheet
from descend.verbs.advice import advise, format_duration
from descend.verbs.asked import find_recipe, read_asked
from descend.verbs.measure import measure

HELP = """usage: descend plan RECIPE [--flags] [--json] [--sheet FILE.png]

Read the data, take a few steps, and predict time and memory. The flags are those of `descend train`.
Of images that are classified, segmented or searched for objects, --sheet draws the first ones as the model will see
them in training, with what it is to say of them.

examples
  descend plan gpt2-pydoc
  descend plan gpt2-pydoc --data.path book.txt --model.width 512 --json
  descend plan yolo-scenes --data.path coco/ --sheet first.png
"""


def plan(recipe: str | Recipe, values: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """What a run of a recipe will take: data facts, seconds, bytes, threads, from a few measured steps.

    Args:
        recipe: its name, its file, or your own Recipe.
        values: other values of the recipe, by the names of its flags: {"model.width": 64}.
    """
    asked = find_recipe(recipe, values)
    measured = measure(asked)
    parameters = int(str(measured.facts["parameters"]))
    return {
        "data": {k: v for k, v in measured.facts.items() if k != "parameters"},
        "parameters": parameters,
        "steps": asked.loop.steps,
        "step_seconds": measured.step,
        "evaluation_seconds": measured.evaluation,
        "total_seconds": measured.seconds(),
        "memory_bytes": measured.memory,
        "checkpoint_bytes": 4 * 4 * parameters,  # the weights twice, two moments of the optimizer
        "threads": measured.threads,
        "device": measured.device,
        "advice": advise(asked, measured),
    }


@dataclass(frozen=True)
class PlanFlags:
    """What to plan."""

    recipe: Annotated[Any, tyro.conf.arg(name="")]
    json: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Print JSON."""
    sheet: str = ""
    """A .png file to draw the first training images to, with their classes, masks or boxes."""


def main(args: list[str]) -> None:
    """The command: its flags depend on the recipe."""
    if not args or args[0].startswith("-"):
        print(HELP, end="")
        return
    question = read_asked(PlanFlags, recipes.get(args[0]), args[1:], f"descend plan {args[0]}")
    if question.sheet:
        check_png(Path(question.sheet), "--sheet")
        write_sheet(question.recipe, Path(question.sheet), "--sheet")
    found = plan(question.recipe)
    if question.json:
        print(json.dumps(found, indent=2))
        return
    for name, value in found["data"].items():
        print(f"{name:22} {value:,}" if isinstance(value, int | float) else f"{name:22} {value}")
    print(f"{'parameters':22} {found['parameters']:,}")
    print(f"{'device':22} {found['device']}")
    print(f"{'threads':22} {found['threads']}")
    print(f"{'a step':22} {found['step_seconds'] * 1000:.1f} ms")
    print(f"{'an evaluation':22} {found['evaluation_seconds']:.2f} s")
    print(f"{'memory':22} {found['memory_bytes'] / 1e6:,.0f} MB")
    print(f"{'a checkpoint':22} {found['checkpoint_bytes'] / 1e6:,.1f} MB")
    print(f"{'total':22} {format_duration(found['total_seconds'])} for {found['steps']:,} steps")
    for line in found["advice"]:
        print(f"{'shorter':22} {line}")
    if question.sheet:
        print(f"{'sheet':22} {question.sheet}")
