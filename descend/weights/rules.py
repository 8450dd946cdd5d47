"""Key rules: one table that says, both ways, how a model's tensors are named and laid out in a public checkpoint.

    rename("wte.weight", "transformer.wte.weight")
    transpose("h.{}.attn.qkv.weight", "transformer.h.{}.attn.c_attn.weight")      W is stored (in, out)
    tie("lm_head.weight", "transformer.wte.weight")                              the file may repeat a matrix
    drop("transformer.h.{}.attn.bias")                                           a buffer of the other side
    stack("h.{}.experts.up", "h.{}.experts.{}.up.weight")       the last number is a place in our tensor's first axis
    untied("head.weight", "lm_head.weight", "wte.weight")       a rename, or a tie where our model has no such tensor
    copied("head.weight", "lm_head.weight", "wte.weight")       an `untied` that files leave out when it is equal
    subtree("image", "vision")                                  every tensor below a name

`{}` stands for a layer number. Reading and writing follow the same lines, so the two ways cannot drift apart. A model
file without a table has its own names in the file: `same_names`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache

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
    left_out: bool = False  # the file may leave it out when it is equal to `same_as`


def rename(ours: str, theirs: str) -> Rule:
    """The same tensor under another name."""
    return Rule(ours, theirs)


def rename_pair(ours: str, theirs: str) -> list[Rule]:
    """A layer's weight and bias."""
    return [rename(f"{ours}.{p}", f"{theirs}.{p}") for p in ("weight", "bias")]


def transpose(ours: str, theirs: str) -> Rule:
    """A matrix that the file stores as (in, out)."""
    return Rule(ours, theirs, _flip, _flip)


def tie(theirs: str, same_as: str) -> Rule:
    """A key that repeats another key of the file: not written; when present it must be equal."""
    return Rule("", theirs, same_as=same_as)


def untied(ours: str, theirs: str, same_as: str) -> Rule:
    """A matrix that some models of the family tie to another one: then ours is not there, and the rule is `tie`."""
    return Rule(ours, theirs, same_as=same_as)


def copied(ours: str, theirs: str, same_as: str) -> Rule:
    """As `untied`, but a file without the key means a matrix of its own that is equal to the other one."""
    return Rule(ours, theirs, same_as=same_as, left_out=True)


def stack(ours: str, theirs: str) -> Rule:
    """One tensor here, a tensor for each place of its first axis in the file: `theirs` has one more `{}`, the last."""
    return Rule(ours, theirs, stacked=True)


def subtree(ours: str, theirs: str = "") -> Rule:
    """Every tensor below a name; without a second one it has the same name in the file."""
    return Rule(f"{ours}.{{*}}", f"{theirs or ours}.{{*}}")


def drop(theirs: str) -> Rule:
    """A key of the file that this model computes instead of storing."""
    return Rule("", theirs)


BATCH_NORM = ("weight", "bias", "running_mean", "running_var", "num_batches_tracked")


def batch_norm(ours: str, theirs: str) -> list[Rule]:
    """Scale and shift of a batch norm, and its three running values."""
    return [rename(f"{ours}.{name}", f"{theirs}.{name}") for name in BATCH_NORM]


def _fill(pattern: str, found: Iterable[str]) -> str:
    for part in found:
        pattern = re.sub(r"\{\*?\}", part, pattern, count=1)
    return pattern


class Lookup:
    """A table of rules ready for many keys of one side, "ours" or "theirs".

    A key and its rule differ in numbers only, so a rule is laid where the rest of its name says: a key then meets the
    few rules that may match it instead of thousands.
    """

    def __init__(self, rules: Iterable[Rule], side: str):
        self.rules: list[tuple[str, Rule, str]] = []  # what the key is like, the rule, and the name on the other side
        self.places: dict[str, list[int]] = {}
        for i, rule in enumerate(rules):
            row = (rule.ours, rule, rule.theirs) if side == "ours" else (rule.theirs, rule, rule.ours or rule.same_as)
            self.rules.append(row)
            self.places.setdefault(SUBTREE if SUBTREE in row[0] else leave_numbers(row[0]), []).append(i)

    def list_all(self, key: str) -> list[tuple[Rule, str]]:
        """Every rule that matches, in the order of the table, and the key's name on the other side."""
        near = sorted([*self.places.get(leave_numbers(key), ()), *self.places.get(SUBTREE, ())])
        found = [(_numbers(pattern, key), rule, other) for pattern, rule, other in map(self.rules.__getitem__, near)]
        return [(rule, _fill(other, numbers)) for numbers, rule, other in found if numbers is not None]

    def find(self, key: str) -> tuple[Rule, str] | None:
        """The first rule that matches, and the key's name on the other side."""
        return next(iter(self.list_all(key)), None)

    def find_own(self, name: str) -> tuple[Rule, str]:
        """As `find`, for a tensor of the model: where it has no rule, the table of the model is wrong."""
        found = self.find(name)
        if found is None:
            raise KeyError(f"no key rule for {name!r}: add one to KEYS")
        return found


SUBTREE = "{*}"
NUMBER = re.compile(r"\{\}|\d+")


def leave_numbers(name: str) -> str:
    """A name or a pattern without its numbers."""
    return NUMBER.sub("", name)


def find(key: str, rules: Iterable[Rule], side: str) -> tuple[Rule, str] | None:
    """The rule whose `side` ("ours" or "theirs") matches this key, and the key's name on the other side."""
    return Lookup(rules, side).find(key)


def place(rule: Rule, key: str) -> int:
    """Where a tensor of the file belongs in the stack, by the last number of its key."""
    return int((_numbers(rule.theirs, key) or ["0"])[-1])


def same_names(names: Iterable[str]) -> list[Rule]:
    """The rules of a model whose tensors have the same names in the file."""
    return [rename(name, name) for name in names]


CODES = (".codes", ".scales")
"""What a layer of codes holds in place of its weight (`nn/quantized.py`), as rows of outputs in every file."""


def code_rules(rules: Iterable[Rule]) -> list[Rule]:
    """Where the codes of a weight are in the file: beside the place of the weight, whatever its layout there."""
    found = [rule for rule in rules if rule.ours.endswith(".weight") and rule.theirs.endswith("weight")]
    names = ((rule.ours.removesuffix(".weight"), rule.theirs.removesuffix("weight")) for rule in found)
    return [rename(f"{ours}{part}", f"{theirs}{part[1:]}") for ours, theirs in names for part in CODES]


def rename_tensors(state: Mapping[str, Tensor], rules: Iterable[Rule]) -> dict[str, Tensor]:
    """The tensors under their public names and in their public shapes: views of ours where there is no more to it."""
    tensors: dict[str, Tensor] = {}
    table = Lookup(rules, "ours")
    for name, tensor in state.items():
        rule, theirs = table.find_own(name)
        parts = {theirs: tensor}
        if rule.stacked:
            parts = {theirs.replace("{}", str(i)): part for i, part in enumerate(tensor.unbind(0))}
        tensors |= {key: rule.save(part.detach()).cpu() for key, part in parts.items()}
    return tensors


def _numbers(pattern: str, key: str) -> list[str] | None:
    if "{" not in pattern:
        return [] if pattern and pattern == key else None
    match = _compile(pattern).fullmatch(key)
    return None if match is None else list(match.groups())


@cache
def _compile(pattern: str) -> re.Pattern[str]:
    return re.compile(re.escape(pattern).replace(r"\{\}", r"(\d+)").replace(r"\{\*\}", "(.+)"))
