"""README.md of a public folder: what the model is, what it reached, how it was trained, and how to open it.

Everything comes from the run's own files. Of paths only the last name is told: where a machine keeps its data is
nobody's business.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from descend.diagnosis.signs import flatten
from descend.files import read_json
from descend.report.history import History, as_number, read_history
from descend.report.scores import MEANING, spell
from descend.weights.checkpoints import step_of
from descend.weights.layout import Layout

NAME = "README.md"
FACTS = 40  # lines of facts about the data
TOLD = ("about", "takes", "parameters")  # of a recipe, to whoever chooses one
PUBLIC = {  # where weights of this layout are opened, besides here
    "transformers": 'from transformers import {name}\n\nmodel = {name}.from_pretrained("{folder}")',
    "diffusers": 'from diffusers import DiffusionPipeline\n\npipeline = DiffusionPipeline.from_pretrained("{folder}")',
}


def is_public(layout: Layout) -> bool:
    """Whether another library has this class: its names for what ours calls differently say so."""
    renamed = any(ours != theirs for ours, theirs in layout.fields.items())
    return layout.library == "diffusers" or (layout.library == "transformers" and renamed)


def write_card(run: Path, checkpoint: Path, saved: Path, out: str, kind: str, layout: Layout, parameters: int) -> str:
    """The page, for a checkpoint of a run or for a model folder that was saved and will be called `out`."""
    history = read_history(run) if (run / "recipe.json").is_file() else None
    name = history.name if history else run.name
    about = " ".join(map(hide_path, str(history.recipe.get("about") or "").split())) if history else ""
    library = layout.library if is_public(layout) else "descend"
    lines = ["---", f"library_name: {library}", "tags:", "- descend", f"- {kind.lower()}", "---", "", f"# {name}", ""]
    lines += [f"{about or f'A {kind}'}. {kind}, {parameters:,} parameters.", ""]
    if history:
        lines += [*list_scores(history, step_of(checkpoint.name)), *list_training(history, step_of(checkpoint.name))]
    lines += ["## Open it", "", "```python", "import descend", "", f'model = descend.load("{out}")', "```", ""]
    if is_public(layout):
        lines += ["```python", PUBLIC[layout.library].format(folder=out, name=name_class(saved)), "```", ""]
    return "\n".join(lines)


def list_scores(history: History, step: int | None) -> list[str]:
    """The scores of this checkpoint: on validation data, which chose it, and on test data, where it was judged."""
    valid: dict[str, Any] = next((line["valid"] for line in history.valid if line["step"] == step), {})
    test: dict[str, Any] = next((line["scores"] for line in history.test if line["step"] == step), {})
    if not valid and not test:
        return []
    lines = ["## Scores", "", "| score | validation | test | meaning |", "|---|---|---|---|"]
    for name in dict.fromkeys([*valid, *test]):
        cells = [format_score(part.get(name)) for part in (valid, test)]
        lines.append(f"| {spell(name)} | {cells[0]} | {cells[1]} | {MEANING.get(name, '')} |")
    direction, watched = history.watch
    chosen = f"The validation data chose this checkpoint ({direction} {watched})"
    chosen += "; the test data were asked once." if test else "."
    return [*lines, "", chosen if history.best and history.best[0] == step else f"Step {step}.", ""]


def format_score(value: Any) -> str:
    number = as_number(value)
    return "" if math.isnan(number) else f"{number:.4g}"


def list_training(history: History, step: int | None) -> list[str]:
    """Steps, time, machine, data and the recipe's values."""
    of = f" of {history.steps:,}" if history.steps else ""
    here = history.recipe.get("environment")
    here = here if isinstance(here, dict) else {}
    where = ", ".join(str(here[key]) for key in ("cpu", "device", "precision") if here.get(key))
    with_versions = f"descend {history.recipe.get('descend', '')}, torch {here.get('torch', '?')}"
    lines = ["## How it was trained", ""]
    lines += [
        f"Recipe `{history.name}`, step {step if step is not None else history.step:,}{of}, {history.seconds:,.0f} s"
    ]
    lines[-1] += f" on {where} with {with_versions}." if where else f" with {with_versions}."
    facts = [f"- {name}: {hide_path(value)}" for name, value in list(history.facts.items())[:FACTS] if name != "unit"]
    values = history.recipe.get("values")
    flat = flatten(values if isinstance(values, dict) else {})
    flags = [f"--{name} {hide_path(value)}" for name, value in flat.items() if is_flag(name, value)]
    return [
        *lines,
        "",
        *facts,
        "",
        "<details><summary>Values of the recipe</summary>",
        "",
        "```",
        *flags,
        "```",
        "",
        "</details>",
        "",
    ]


def name_class(saved: Path) -> str:
    """The class that config.json names."""
    named = read_json(saved / "config.json").get("architectures") if (saved / "config.json").is_file() else None
    return str(named[0]) if isinstance(named, list) and named else "AutoModel"


def is_flag(name: str, value: Any) -> bool:
    """Whether it is something to give on the command line."""
    return name not in TOLD and value not in (None, "")


def hide_path(value: Any) -> str:
    """A path of this machine by its last name; other values as they are."""
    text = " ".join(str(value).split())
    return Path(text).name if text.startswith(("/", "~", "./", "../")) else text
