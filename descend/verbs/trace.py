"""trace: a computation node by node, in both modes of differentiation."""

from __future__ import annotations

import json as json_format
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import tyro
from torch import Tensor

from descend.errors import Mistake
from descend.own_code import use_code
from descend.ranges import Whole
from descend.tracing.examples import EXAMPLES
from descend.tracing.expression import read_values
from descend.tracing.page import make_trace_page
from descend.tracing.result import Trace, make_trace
from descend.tracing.sources import find_source
from descend.tracing.table import as_json


def trace(
    what: str | Callable[..., Any],
    *inputs: Any,
    output: str = "",
    along: str = "",
    segments: int = 0,
    checkpoint: str | int = "best",
    **at: Any,
) -> Trace:
    """A computation node by node, in both modes of differentiation. Printed, it is a table; it finds values by name.

    `descend.trace(fn, x, w)` records what fn does; `descend.trace("sin(x*y)", x=1.0, y=2.0)` an expression.

    Args:
        what: a function or module; or by name: an expression, a walkthrough, a model, a run's folder.
        inputs: of the function or module; a plain float becomes a float64 tensor.
        output: which number of the result: "0,1", "sum" or "mean".
        along: the direction of forward mode: "w" or "w[0,1]".
        segments: how many segments of gradient checkpointing; 0: √n.
        checkpoint: of a run: best, last or a step.
        at: the variables of an expression, by name.
    """
    if isinstance(what, str):
        if inputs:
            raise Mistake("trace: positional inputs belong to a function; give an expression's by name: x=1.0")
        values = {name: torch.as_tensor(value, dtype=torch.float64) for name, value in at.items()}
        return trace_named(what, values, output, along, segments, checkpoint)
    if not callable(what):
        raise Mistake(f"trace: {type(what).__name__} is neither a function nor a name")
    if at:
        raise Mistake(f"trace: {next(iter(at))}= is for an expression; give a function its inputs by position")
    given = [torch.tensor(x, dtype=torch.float64) if isinstance(x, float) else x for x in inputs]
    return make_trace(what, given, output, along, segments, getattr(what, "__name__", type(what).__name__))


def trace_named(
    what: str, at: dict[str, Tensor], output: str, along: str, segments: int, checkpoint: str | int
) -> Trace:
    """An expression with its variables' values, a walkthrough, a model or a run."""
    found = find_source(what, at, checkpoint)
    return make_trace(found.fn, found.inputs, output, along, segments, found.title, found.module)


def command(
    what: str = "",
    /,
    *,
    at: tyro.conf.UseAppendAction[list[str]] = [],  # noqa: B006
    output: str = "",
    along: str = "",
    segments: Whole = 0,
    checkpoint: str = "best",
    code: str = "",
    html: Path | None = None,
    json: bool = False,
) -> None:
    """A computation node by node: value, local Jacobian, tangent and adjoint, and the cost of both modes.

    Without a name, list the walkthroughs of the books.

    Args:
        what: an expression, a walkthrough, a model (at its tiny size) or a run's folder.
        at: the value of a variable of the expression: x=1, w=[1,2].
        output: which number of the result: 0,1 or sum or mean; 1:0 is of the second tensor.
        along: the direction of forward mode: an input or parameter, or an element of it: w[0,1].
        segments: segments of gradient checkpointing; 0: the square root of the number of operations.
        checkpoint: of a run: best, last or a step.
        code: the file of a recipe or model of your own, where it is not found by its name.
        html: write a page to click through.
        json: print JSON.

    Examples:
        descend trace "sin(x*y) + x**2" --at x=1 --at y=2
        descend trace attention-head --html head.html
        descend trace gpt2 --output 0,6,3 --along wte.weight
    """
    use_code(code)
    if not what:
        known = [{"walkthrough": name, "about": example.about} for name, example in EXAMPLES.items()]
        text = "\n".join(f"{entry['walkthrough']:<15} {entry['about']}" for entry in known)
        print(json_format.dumps(known, indent=1) if json else text)
        return
    if html is not None and (html.suffix != ".html" or not html.parent.is_dir()):
        raise Mistake(f"--html {html}: name a file that ends in .html, in a folder that exists")
    found = trace_named(what, read_values(at), output, along, segments, checkpoint)
    print(json_format.dumps(as_json(found), indent=1) if json else found)
    if html is not None:
        html.write_text(make_trace_page(found), encoding="utf-8")
        if not json:
            print(f"\nwritten: {html}")
