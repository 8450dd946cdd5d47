"""What can be traced by name: an expression, a walkthrough of the books, a model at its tiny size, a trained run."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from descend import models
from descend.errors import Mistake, nearest
from descend.tracing.examples import EXAMPLES
from descend.tracing.expression import Expression, inputs_of


class Source(NamedTuple):
    """A function with its inputs; `module` gives the parameters their names."""

    title: str
    fn: Callable[..., Any]
    inputs: tuple[Any, ...]
    module: nn.Module | None = None


def source(what: str, at: dict[str, Tensor]) -> Source:
    """Whatever the word or the expression means."""
    if what in EXAMPLES or what in models.names() or Path(what).is_dir():
        if at:
            raise Mistake(f"--at {next(iter(at))}: only an expression has variables; {what} brings its own inputs")
        return example(what) if what in EXAMPLES else run(Path(what)) if Path(what).is_dir() else model(what)
    if not at and re.fullmatch(r"[\w./-]+", what):
        known = [*EXAMPLES, *models.names()]
        raise Mistake(
            f"there is no walkthrough, model or run {what!r}.{nearest(what, known)} Known: {', '.join(known)};"
            " for an expression, give its variables with --at"
        )
    expression = Expression(what)
    return Source(what, expression, tuple(inputs_of(expression, at)))


def example(name: str) -> Source:
    found = EXAMPLES[name]
    return Source(f"{name}: {found.about}", found.fn, found.inputs)


def model(name: str) -> Source:
    """A model family at its TINY size, with random weights and its TINY_INPUT."""
    file: Any = import_module(f"descend.models.{name}")
    state = torch.get_rng_state()
    torch.manual_seed(0)
    network = models.model_class(name)(file.TINY).eval()
    torch.set_rng_state(state)
    if hasattr(file, "TINY_INPUT"):
        given = file.TINY_INPUT()
    else:
        given = torch.randint(file.TINY.vocab, (2, 7), generator=torch.Generator().manual_seed(0))
    return Source(f"{name}: its TINY size", network, given if isinstance(given, tuple) else (given,))


def run(folder: Path) -> Source:
    """The loss of a trained run's last checkpoint on two examples of its training data."""
    from descend.engine.run import Run
    from descend.kinds.saved import from_json

    found = Run.open(folder)
    parts = from_json(found.recipe["values"], str(found.folder / "recipe.json")).build()
    parts.model.load_state_dict(models.load(folder).state_dict())
    parts.task.eval()
    batch = {name: x[:2] for name, x in next(parts.stream).items()}
    player, loss = next(iter(parts.task.moves(batch)))
    return Source(f"{folder}: loss of {player} on two examples", loss, (), parts.task)
