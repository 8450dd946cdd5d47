"""The one way in: every tensor of the files finds its place in the model, or nothing is copied.

    1. each key of each file is looked up in the rules      refused: unknown, beyond the model, mis-shaped, given twice
    2. each tensor of the model has got all its pieces      refused: missing
    3. each key that repeats another one is equal to it     refused: untied weights for a tied model
    4. the tensors are copied, one by one                   files larger than memory pass through

Steps 1 to 3 read names and shapes (and the tied matrices), so a mistake is found before anything is changed. What a
family's file has for another head than this class's is left out. `num_batches_tracked`, the count that batch norm
keeps, is missing in files older than it, and then 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from descend.errors import Mistake, nearest
from descend.weights.files import TensorFile
from descend.weights.rules import Lookup, Rule, place

COUNT = "num_batches_tracked"


class Copy(NamedTuple):
    """A tensor of a file, by its full name, and where it goes."""

    file: TensorFile
    key: str
    rule: Rule
    to: Tensor


class Plan(NamedTuple):
    """What is copied, by our name and the place in its stack; and keys that must equal another key of the files."""

    copies: dict[tuple[str, int], Copy]
    repeats: list[tuple[TensorFile, str, str]]


def plan_reading(model: nn.Module, rules: Sequence[Rule], files: Sequence[TensorFile], prefix: str = "") -> Plan:
    """Where each tensor of the files goes in the model, which may be on the meta device: names and shapes decide."""
    state = model.state_dict()
    plan = plan_copies(type(model).__name__, state, rules, files, prefix)
    take_left_out(plan, state, rules)
    check_missing(plan, state, rules, files)
    return plan


def read_tensors(model: nn.Module, rules: Sequence[Rule], files: Sequence[TensorFile], prefix: str = "") -> None:
    """Copy the files' tensors into the model; `prefix` is what checkpoints of the bare model leave out of every key."""
    state = model.state_dict()
    plan = plan_reading(model, rules, files, prefix)
    check_repeats(plan, prefix)
    with torch.no_grad():
        for copy in plan.copies.values():
            copy.to.copy_(copy.rule.load(copy.file.get(copy.key)))
        for name in state.keys() - {name for name, _ in plan.copies}:
            state[name].zero_()  # a count of batches: all else is there


def plan_copies(
    model: str, state: Mapping[str, Tensor], rules: Sequence[Rule], files: Sequence[TensorFile], prefix: str
) -> Plan:
    """Where each key of the files goes."""
    plan, table = Plan({}, []), Lookup(rules, "theirs")
    parts = {name.partition(".")[0] for name in state}
    for file, key in ((holder, key) for holder in files for key in holder.shapes):
        full = key if table.find(key) else prefix + key
        matches = table.list_all(full)
        found = next((found for found in matches if found[1] in state), next(iter(matches), None))
        if found is None:
            known = [found[1] for found in map(Lookup(rules, "ours").find, state) if found]
            raise Mistake(f"{file.path}: unknown key {key!r} for {model}.{nearest(key, known)}")
        rule, ours = found
        if rule.same_as and (not rule.ours or ours not in state):
            plan.repeats.append((file, key, rule.same_as if rule.ours else ours))
            continue
        if not rule.ours or ours.partition(".")[0] not in parts:
            continue  # computed here, or of a head that this class of the family does not have
        at = place(rule, full) if rule.stacked else 0
        if ours not in state or (rule.stacked and at >= len(state[ours])):
            raise Mistake(f"{file.path}: key {key!r} does not exist in this {model}, which is smaller")
        to = state[ours][at] if rule.stacked else state[ours]
        shape, asked = file.shapes[key], tuple(rule.save(to).shape)
        if shape != asked:
            raise Mistake(f"{file.path}: key {key!r} has shape {shape}, this {model} expects {asked}")
        if not _fits(file.dtypes[key], to.dtype):
            raise Mistake(f"{file.path}: key {key!r} has the type {file.dtypes[key]}, this {model} expects {to.dtype}")
        if (ours, at) in plan.copies:
            raise Mistake(f"{file.path}: key {key!r} is a duplicate of {plan.copies[ours, at].key!r}")
        plan.copies[ours, at] = Copy(file, key, rule, to)
    return plan


def _fits(found: str, expected: torch.dtype) -> bool:
    """Whether both are fractions, or both whole numbers: bfloat16 may become float32, int32 may not."""
    fraction = found.startswith(("F", "BF"))
    return fraction == expected.is_floating_point and (found == "C64") == expected.is_complex


def take_left_out(plan: Plan, state: Mapping[str, Tensor], rules: Sequence[Rule]) -> None:
    """A matrix that files leave out when it equals another one is a copy of that."""
    table = Lookup(rules, "theirs")
    for rule in rules:
        twin = table.find(rule.same_as) if rule.left_out else None
        if twin and rule.ours in state and (rule.ours, 0) not in plan.copies and (twin[1], 0) in plan.copies:
            plan.copies[rule.ours, 0] = plan.copies[twin[1], 0]._replace(to=state[rule.ours])


def check_missing(plan: Plan, state: Mapping[str, Tensor], rules: Sequence[Rule], files: Sequence[TensorFile]) -> None:
    """Every tensor of the model has got all its pieces; files older than batch norm's count need not have that."""
    table = Lookup(rules, "ours")
    waiting = Counter({name: len(t) if table.find_own(name)[0].stacked else 1 for name, t in state.items()})
    waiting.subtract(name for name, _ in plan.copies)
    names = [name for name, count in waiting.items() if count > 0 and not name.endswith(COUNT)]
    missing = sorted(table.find_own(name)[1] for name in names)
    if missing:
        path = files[0].path if len(files) == 1 else files[0].path.parent
        raise Mistake(f"{path}: missing key {missing[0]!r}" + (f" and {len(missing) - 1} more" if missing[1:] else ""))


def check_repeats(plan: Plan, prefix: str) -> None:
    """A key that repeats another one is equal to it."""
    by_key = {prefix + copy.key.removeprefix(prefix): copy for copy in plan.copies.values()}
    for file, key, twin in plan.repeats:
        copy = by_key.get(twin) or by_key.get(prefix + twin)
        if copy and not torch.equal(file.get(key), copy.file.get(copy.key)):
            raise Mistake(
                f"{file.path}: {key!r} differs from {twin!r}; this model ties the two and cannot hold untied weights"
            )
