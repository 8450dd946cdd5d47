"""Run a worked example with the library's own code, and compare it with what the books' inputs really give.

The functions live in `examples/FAMILY.py`, or in a folder of that name. `recomputed` has ten significant digits, hence
the tolerance. A printed value is shown, never compared: it may be an erratum.
"""

from __future__ import annotations

import importlib
import math
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from descend.catalog.examples import Compute
from descend.catalog.systems import Example, families, systems

TOLERANCE = 1e-6
ZERO = 1e-9  # an exact 0 of the books: the inputs have ten digits, so here it may be a rounding error


@dataclass(frozen=True)
class Value:
    """One key of an example. `agree` is None where the key is set aside, or where the book alone has it."""

    key: str
    printed: Any
    recomputed: Any
    ours: Any
    agree: bool | None
    reason: str = ""


@dataclass(frozen=True)
class Outcome:
    """An example as run now. `state`: agrees, differs, failed (our code raised), set aside, or not written yet."""

    example: Example
    state: str
    values: tuple[Value, ...]
    reason: str = ""

    @property
    def erratum(self) -> bool:
        """True when the book's printed value is wrong."""
        return self.example.verdict == "erratum"


@cache
def load_examples(family: str) -> tuple[dict[str, Compute], dict[str, str]]:
    """EXAMPLES and SET_ASIDE of a family; both are empty while nobody has written its file."""
    folder, name = Path(__file__).parent / "examples", family.replace("-", "_")
    computed: dict[str, Compute] = {}
    aside: dict[str, str] = {}
    for path in sorted([*folder.glob(f"{name}.py"), *folder.glob(f"{name}/[!_]*.py")]):
        dotted = ".".join(path.relative_to(folder).with_suffix("").parts)
        module = importlib.import_module(f"descend.catalog.examples.{dotted}")
        computed, aside = computed | module.EXAMPLES, aside | module.SET_ASIDE
    return computed, aside


@cache
def load_all_examples() -> tuple[dict[str, Compute], dict[str, str]]:
    """EXAMPLES and SET_ASIDE of all families together."""
    pairs = [load_examples(family) for family in families()]
    return {k: v for e, _ in pairs for k, v in e.items()}, {k: v for _, s in pairs for k, v in s.items()}


def run(example: Example) -> Outcome:
    """Compute the example now, and compare every key."""
    if example.system is None:
        return Outcome(example, "set aside", only_printed(example), "it belongs to no system")
    computed, aside = load_examples(systems()[example.system].family)
    if example.id in aside:
        return Outcome(example, "set aside", only_printed(example), aside[example.id])
    if example.id not in computed:
        return Outcome(example, "not written yet", only_printed(example))
    try:
        ours = plain(computed[example.id](example.inputs))
    except Exception as error:  # one broken example must not hide the others: it is reported, and its test fails
        return Outcome(example, "failed", only_printed(example), f"{type(error).__name__}: {error}")
    values = compare(example, ours, aside)
    state = "agrees" if all(v.agree is not False for v in values) else "differs"
    return Outcome(example, state, values)


def compare(example: Example, ours: dict[str, Any], aside: dict[str, str]) -> tuple[Value, ...]:
    """One Value for each key of `recomputed`; a key that only we have is a difference."""
    values = []
    for key, right in example.recomputed.items():
        reason = aside.get(f"{example.id}:{key}", "")
        agree = None if reason else key in ours and same(ours[key], right)
        values.append(Value(key, example.printed.get(key), right, ours.get(key), agree, reason))
    values += [
        Value(k, None, None, v, False, "not in the books") for k, v in ours.items() if k not in example.recomputed
    ]
    return tuple(values) + only_in_print(example)


def only_printed(example: Example) -> tuple[Value, ...]:
    """The values of an example that was not run."""
    values = (Value(k, example.printed.get(k), v, None, None) for k, v in example.recomputed.items())
    return tuple(values) + only_in_print(example)


def only_in_print(example: Example) -> tuple[Value, ...]:
    """What the book prints under keys that were not recomputed: claims in words, formulas."""
    return tuple(Value(k, v, None, None, None) for k, v in example.printed.items() if k not in example.recomputed)


def same(ours: Any, right: Any) -> bool:
    """Words, truth values and whole numbers exactly, other numbers to the digits given, lists part by part."""
    if isinstance(right, dict):
        return (
            isinstance(ours, dict) and ours.keys() == right.keys() and all(same(ours[k], v) for k, v in right.items())
        )
    if isinstance(right, list):
        return isinstance(ours, list) and len(ours) == len(right) and all(map(same, ours, right))
    if isinstance(right, float) and isinstance(ours, int | float) and not isinstance(ours, bool):
        return math.isclose(ours, right, rel_tol=TOLERANCE, abs_tol=0.0 if right else ZERO)
    return isinstance(ours, bool) == isinstance(right, bool) and ours == right


def plain(value: Any) -> Any:
    """Tensors and arrays as nested lists, tuples as lists, and nan, inf and -inf as words: JSON has no such numbers."""
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if isinstance(value, Tensor | np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value
