"""The model of a recipe of graphs: sizes that follow from the data, and the head of the level that is asked about."""

from __future__ import annotations

import dataclasses
import sys
from typing import Any

from descend.engine.loop import Loop
from descend.errors import Mistake
from descend.models import make_model, with_head
from descend.weights.pretrained import Pretrained


def build_graph_model(config: Any, head: str, sizes: dict[str, int]) -> Pretrained:
    """A model of the config's family with this head ("ForNodes"); a family without heads is taken as it is.

    `sizes` are by the names of the config's fields; `inputs` and `outputs` must be there, others may.
    """
    named = {field.name for field in dataclasses.fields(config)}
    if missing := [name for name in ("inputs", "outputs") if name not in named]:
        raise Mistake(f"--model: {type(config).__name__} needs a field for what the graphs set: {missing[0]}: int = 16")
    default = type(config)()
    given = {name: size for name, size in sizes.items() if name in named}
    for name, size in given.items():
        if getattr(config, name) not in (getattr(default, name), size):
            raise Mistake(f"--model.{name}: the data gives {size}; leave this flag out")
    try:
        sized = dataclasses.replace(config, **given)
    except ValueError as error:
        raise Mistake(f"--model: {error}") from None
    has_heads = bool(getattr(sys.modules[type(config).__module__], "ARCHITECTURES", {}))
    return with_head(sized, head) if has_heads else make_model(sized)


def check_one_graph(loop: Loop) -> None:
    """One graph is one example: there is nothing to split a step into."""
    if loop.accumulate > 1:
        raise Mistake(f"--accumulate {loop.accumulate}: a step is one graph, which is not cut; leave this flag out")
