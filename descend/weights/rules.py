"""Key rules: one table that says, both ways, how a model's tensors are named and laid out in a public checkpoint.

    rename("wte.weight", "transformer.wte.weight")
    transpose("h.{}.attn.qkv.weight", "transformer.h.{}.attn.c_attn.weight")      W is stored (in, out)
    tie("lm_head.weight", "transformer.wte.weight")                              the file may repeat a matrix
    drop("transformer.h.{}.attn.bias")                                           a buffer of the other side
    stack("h.{}.experts.up", "h.{}.experts.{}.up.weight")       the last number is a place in our tensor's first axis
    untied("head.weight", "lm_head.weight", "wte.weight")       a rename, or a tie where our model has no such tensor

`{}` stands for a layer number. Reading and writing follow the same lines, so the two ways cannot drift apart.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from torch import Tensor


def _same(x: Tensor) -> Tensor:
    return x


def _flip(x: Tensor) -> Tensor:
    return x.t()


@dataclass(frozen=True)
class Rule:
    """`ours` in the module, `theirs` in the file; an empty name means the tensor does not exist on that side."""

    ours: str
    theirs: str
    load: Callable[[Tensor], Tensor] = _same
    save: Callable[[Tensor], Tensor] = _same
    same_as: str = ""  # for a tied matrix: the key in the file that it repeats
    stacked: bool = False  # the file has one tensor for each place of our first axis


def rename(ours: str, theirs: str) -> Rule:
    """The same tensor under another name."""
    return Rule(ours, theirs)


def transpose(ours: str, theirs: str) -> Rule:
    """A matrix that the file stores as (in, out)."""
    return Rule(ours, theirs, _flip, _flip)


def tie(theirs: str, same_as: str) -> Rule:
    """A key that repeats another key of the file: not written; when present it must be equal."""
    return Rule("", theirs, same_as=same_as)


def untied(ours: str, theirs: str, same_as: str) -> Rule:
    """A matrix that some models of the family tie to another one: then ours is not there, and the rule is `tie`."""
    return Rule(ours, theirs, same_as=same_as)


def stack(ours: str, theirs: str) -> Rule:
    """One tensor here, a tensor for each place of its first axis in the file: `theirs` has one more `{}`, the last."""
    return Rule(ours, theirs, stacked=True)


def drop(theirs: str) -> Rule:
    """A key of the file that this model computes instead of storing."""
    return Rule("", theirs)


BATCH_NORM = ("weight", "bias", "running_mean", "running_var", "num_batches_tracked")


def batch_norm(ours: str, theirs: str) -> list[Rule]:
    """Scale and shift of a batch norm, and its three running values."""
    return [rename(f"{ours}.{name}", f"{theirs}.{name}") for name in BATCH_NORM]


def _fill(pattern: str, numbers: Iterable[str]) -> str:
    for number in numbers:
        pattern = pattern.replace("{}", number, 1)
    return pattern


def find(key: str, rules: Iterable[Rule], side: str) -> tuple[Rule, str] | None:
    """The rule whose `side` ("ours" or "theirs") matches this key, and the key's name on the other side."""
    for rule in rules:
        pattern, other = (rule.ours, rule.theirs) if side == "ours" else (rule.theirs, rule.ours or rule.same_as)
        numbers = _numbers(pattern, key)
        if numbers is not None:
            return rule, _fill(other, numbers)
    return None


def place(rule: Rule, key: str, bare_prefix: str = "") -> int:
    """Where a tensor of the file belongs in the stack, by the last number of its key."""
    return int((_numbers(rule.theirs, key) or _numbers(rule.theirs, bare_prefix + key) or ["0"])[-1])


def _numbers(pattern: str, key: str) -> list[str] | None:
    if "{}" not in pattern:
        return [] if pattern and pattern == key else None
    match = re.fullmatch(re.escape(pattern).replace(r"\{\}", r"(\d+)"), key)
    return None if match is None else list(match.groups())
