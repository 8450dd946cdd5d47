"""What can be traced by name: an expression, a walkthrough of the books, a model at its tiny size, a trained run."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from descend import models
from descend.errors import Mistake, nearest
from descend.ranges import shorten
from descend.tracing.examples import EXAMPLES
from descend.tracing.expression import LONGEST, Expression, order_inputs


class TraceSource(NamedTuple):
    """A function with its inputs; `module` gives the parameters their names."""

    title: str
    fn: Callable[..., Any]
    inputs: tuple[Any, ...]
    module: nn.Module | None = None


def find_source(what: str, at: dict[str, Tensor], checkpoint: str | int = "best") -> TraceSource:
    """Whatever the word or the expression means."""
    if what in EXAMPLES or what in models.names() or os.path.isdir(what):  # unlike Path, no error for a long text
        if at:
            raise Mistake(f"--at {next(iter(at))}: only an expression has variables; {what} brings its own inputs")
        if what in EXAMPLES:
            return open_walkthrough(what)
        return open_model(what) if what in models.names() else open_run(Path(what), checkpoint)
    if not at and re.fullmatch(r"[\w./-]+", what):
        known = [*EXAMPLES, *models.names()]
        raise Mistake(
            f"there is no walkthrough, model or run {shorten(what)!r}.{nearest(what[:LONGEST], known)} "
            f"Known: {', '.join(known)};"
            " for an expression, give its variables with --at"
        )
    expression = Expression(what)
    return TraceSource(what, expression, tuple(order_inputs(expression, at)))


def open_walkthrough(name: str) -> TraceSource:
    found = EXAMPLES[name]
    return TraceSource(f"{name}: {found.about}", found.fn, found.inputs)


def open_model(name: str) -> TraceSource:
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
    return TraceSource(f"{name}: its TINY size", network, given if isinstance(given, tuple) else (given,))


def open_run(folder: Path, checkpoint: str | int = "best") -> TraceSource:
    """The loss of a trained run's checkpoint on two examples of its training data."""
    from descend.data.streams.batches import slice_examples
    from descend.engine.run import Run
    from descend.kinds.saved import from_json

    found = Run.open(folder)
    parts = from_json(found.recipe["values"], str(found.folder / "recipe.json")).build()
    parts.model.load_state_dict(models.load(folder, checkpoint).state_dict())
    parts.task.eval()
    batch = slice_examples(next(parts.stream), 0, 2)
    move = next(iter(parts.task.moves(batch)))
    return TraceSource(f"{folder}: loss of {move.player} on two examples", lambda: move.value().total(), (), parts.task)
