"""trace: a computation node by node, in both modes of differentiation."""

from __future__ import annotations

import json as json_format
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import tyro

from descend.errors import Mistake
from descend.report.page import page
from descend.tracing.examples import EXAMPLES
from descend.tracing.expression import read_values
from descend.tracing.page import body
from descend.tracing.result import Trace, traced
from descend.tracing.sources import source
from descend.tracing.table import as_json


def trace(
    what: str | Callable[..., Any], *inputs: Any, output: str = "", along: str = "", segments: int = 0, **at: Any
) -> Trace:
    """Trace any function or module on inputs, or by name: an expression, a walkthrough, a model, a run folder.

    `descend.trace(fn, x, w)` records what fn does; `descend.trace("sin(x*y)", x=1.0, y=2.0)` an expression. `output`
    chooses a number of the result ("0,1", "sum"), `along` the direction of forward mode ("w", "w[0,1]"), `segments` the
    number of segments of checkpointing (0: √n). A plain float becomes a float64 tensor. Printed, a trace is a table; it
    finds values by name.
    """
    if isinstance(what, str):
        if inputs:
            raise Mistake("trace: positional inputs belong to a function; give an expression's by name: x=1.0")
        found = source(what, {name: torch.as_tensor(value, dtype=torch.float64) for name, value in at.items()})
        return traced(found.fn, found.inputs, output, along, segments, found.title, found.module)
    if not callable(what):
        raise Mistake(f"trace: {type(what).__name__} is neither a function nor a name")
    if at:
        raise Mistake(f"trace: {next(iter(at))}= is for an expression; give a function its inputs by position")
    given = [torch.tensor(x, dtype=torch.float64) if isinstance(x, float) else x for x in inputs]
    return traced(what, given, output, along, segments, getattr(what, "__name__", type(what).__name__))


def command(
    what: str = "",
    /,
    *,
    at: tyro.conf.UseAppendAction[list[str]] = [],  # noqa: B006
    output: str = "",
    along: str = "",
    segments: int = 0,
    html: Path | None = None,
    json: bool = False,
) -> None:
    """A computation node by node: value, local Jacobian, tangent and adjoint, and the cost of both modes.

    Without a name, list the walkthroughs of the books.

    Args:
        what: an expression, a walkthrough, a model (at its tiny size) or a run's folder
        at: the value of a variable of the expression: x=1, w=[1,2]
        output: which number of the result: 0,1 or sum or mean; 1:0 is of the second tensor
        along: the direction of forward mode: an input or parameter, or an element of it: w[0,1]
        segments: segments of checkpointing; 0: the root of the number of operations
        html: write a page to click through
        json: print JSON

    Examples:
        descend trace "sin(x*y) + x**2" --at x=1 --at y=2
        descend trace attention-head --html head.html
        descend trace gpt2 --output 0,6,3 --along wte.weight
    """
    if not what:
        known = [{"walkthrough": name, "about": example.about} for name, example in EXAMPLES.items()]
        text = "\n".join(f"{entry['walkthrough']:<15} {entry['about']}" for entry in known)
        print(json_format.dumps(known, indent=1) if json else text)
        return
    if html is not None and (html.suffix != ".html" or not html.parent.is_dir()):
        raise Mistake(f"--html {html}: name a file that ends in .html, in a folder that exists")
    found = trace(what, output=output, along=along, segments=segments, **read_values(at))
    print(json_format.dumps(as_json(found), indent=1) if json else found)
    if html is not None:
        html.write_text(page(found.program.title, body(found)), encoding="utf-8")
        if not json:
            print(f"\nwritten: {html}")
