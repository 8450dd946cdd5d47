"""Names in a trace: what a call is called and how it is written, and what inputs and results are called."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor, nn
from torch.overrides import resolve_name
from torch.utils import _pytree as pytree

VIEWS = {"get:T", "get:mT", "get:H", "get:mH", "get:real", "get:imag", "get:data"}


def name_operation(func: Any) -> str:
    """The short name of a torch function; reading an attribute is marked "get:"."""
    func = getattr(func, "overloadpacket", func)  # torch.ops.aten.add.Tensor -> add
    parts = (resolve_name(func) or getattr(func, "__name__", "call")).split(".")
    if parts[-1] == "__get__":
        return f"get:{parts[-2]}"
    return parts[-1].strip("_") + ("_" if parts[-1].endswith("_") and not parts[-1].endswith("__") else "")


def spell_arguments(args: Any, kwargs: Any) -> list[str]:
    """The arguments of a call as it would be written, with {} for each tensor; containers are flattened."""
    named = [(name, spell_argument(x)) for name, leaf in kwargs.items() for x in pytree.tree_leaves(leaf)]
    found = [spell_argument(x) for x in pytree.tree_leaves(args)]
    return found + [w if w in ("{}", "None") else f"{name}={w}" for name, w in named]


def spell_argument(x: Any) -> str:
    if isinstance(x, Tensor):
        return "{}"
    if isinstance(x, slice):
        x = ":".join("" if end is None else str(end) for end in (x.start, x.stop))
    text = f"{x:.4g}" if isinstance(x, float) else "..." if x is Ellipsis else str(x)
    return text.replace("{", "{{").replace("}", "}}") if len(text) < 30 else ".."


def format_call(op: str, said: Sequence[str]) -> str:
    """mul({}, {}); arguments left at None are left out."""
    return f"{op}({', '.join(w for w in said if w != 'None')})"


def name_inputs(fn: Callable[..., Any], count: int) -> list[str]:
    """The names of the first parameters of a function."""
    try:
        taken = list(inspect.signature(fn.forward if isinstance(fn, nn.Module) else fn).parameters.values())
    except (TypeError, ValueError):
        taken = []
    positional = [p.name for p in taken if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return [positional[i] if i < len(positional) else f"x{i + 1}" for i in range(count)]
