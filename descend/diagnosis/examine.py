"""The examination of a run: read its files, build it again, measure, check, and tell causes from what follows of them.

The order of the checks is the order of causes. What holds for the initial weights already cannot come from training, so
those checks are made first; a finding that a cause explains is not listed as one of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn

from descend.diagnosis import examples as data
from descend.diagnosis.course import course, highest_rate
from descend.diagnosis.curves import overfit, rate_too_high, rate_too_low, underfit
from descend.diagnosis.evidence import constant_predictions, leak, not_finite
from descend.diagnosis.inside import dead_relu, exploding, growing_norms, saturated_units, vanishing
from descend.diagnosis.probe import moving, probe
from descend.diagnosis.signs import Answers, Finding, Signs
from descend.engine import checkpoint
from descend.engine.distributed import World
from descend.engine.hardware import moved
from descend.engine.protocol import Parts
from descend.engine.run import Run
from descend.engine.training import Training, mean_scores
from descend.errors import Mistake
from descend.kinds.recipe import Recipe
from descend.kinds.saved import from_json
from descend.kinds.table import LearnTable

Check = Callable[[Signs], Finding | None]

INSIDE: tuple[Check, ...] = (dead_relu, saturated_units, exploding, vanishing)
COURSE: tuple[Check, ...] = (growing_norms, rate_too_low, leak, overfit, constant_predictions, underfit)
SCORED = 1024  # training and validation examples that are scored
TOKENS = 8192  # or tokens, where the examples are texts
SICK = {"vanishing-gradient", "constant-predictions", "underfit", "learning-rate-too-low"}
EXPLAINS = {
    "learning-rate-too-high": SICK | {"dead-relu", "saturated-units", "exploding-gradient", "overfit"},
    "dead-relu": SICK | {"learning-rate-too-high"},
    "saturated-units": SICK | {"learning-rate-too-high", "exploding-gradient"},
    "exploding-gradient": SICK | {"learning-rate-too-high", "dead-relu", "overfit", "saturated-units"},
    "vanishing-gradient": SICK,
    "learning-rate-too-low": SICK,
    "constant-predictions": {"underfit"},
}


@dataclass(frozen=True)
class Examination:
    """The causes, what follows from each, what could not be looked at, and the signs."""

    findings: tuple[Finding, ...]
    follows: dict[str, str] = field(default_factory=dict)
    """A finding that is explained -> the one that explains it."""
    notes: tuple[str, ...] = ()
    signs: Signs = field(default_factory=Signs)


def examine(run: Run) -> Examination:
    """Look at a run; nothing in its folder is changed."""
    saved, lines = run.recipe, run.lines()
    signs, notes = course(saved, lines), []
    initial: Signs | None = None
    try:
        recipe: Recipe = from_json(saved.get("values"), str(run.folder / "recipe.json"))
        torch.set_num_threads(int(saved.get("environment", {}).get("threads") or 1))
        parts = recipe.build()
    except Mistake as mistake:
        notes.append(f"the run cannot be built again, so only its curves were read: {mistake}")
    else:
        train, valid = data.drawn(parts.stream), data.held(parts.valid)
        if train is not None and valid is not None:
            signs = of_examples(signs, recipe, train, valid)
        training = Training(parts, replace(recipe.loop, compile="off"), recipe.schedule, World())
        layers, units = probe(training)
        initial = replace(signs, layers=layers, units=units)
        if checkpoint.names(run.checkpoints):
            training.load_state_dict(checkpoint.newest(run.checkpoints, notes.append)[2])
            layers, units = probe(training)
        else:
            notes.append("there is no checkpoint yet: the layers are those of the initial weights")
        if train is not None and valid is not None:
            signs = of_answers(signs, training, parts, train, valid)
        signs = replace(signs, layers=moving(training, layers, highest_rate(lines)), units=units)
    return ordered(signs, initial, tuple(notes))


def ordered(signs: Signs, initial: Signs | None, notes: tuple[str, ...] = ()) -> Examination:
    """All checks in the order of causes; what one explains is set aside."""
    early = [found for check in INSIDE if initial and (found := check(initial))]
    early = [replace(found, evidence=f"with the initial weights already, {found.evidence}") for found in early]
    late = [found for check in (rate_too_high, *INSIDE, *COURSE) if (found := check(signs))]
    early, late = (sorted(some, key=lambda found: found.severity != "fault") for some in (early, late))
    first = not_finite(signs)
    findings: list[Finding] = [first] if first else []
    follows: dict[str, str] = {}
    for found in [*early, *late]:
        if any(found.name == known.name for known in findings):
            continue
        cause = next((known.name for known in findings if found.name in EXPLAINS.get(known.name, ())), None)
        if cause:
            follows[found.name] = cause
        else:
            findings.append(found)
    return Examination(tuple(findings), follows, notes, signs)


def of_examples(signs: Signs, recipe: Recipe, train: data.Examples, valid: data.Examples) -> Signs:
    """What the examples say alone."""
    doubled, repeated = data.shared(train, valid)
    columns: tuple[tuple[str, float], ...] = ()
    if isinstance(recipe, LearnTable) and train.x.dim() == 2:
        columns = data.telling(train, inputs_of(recipe))
    spoilt = data.spoilt(train)
    return replace(signs, spoilt=spoilt, chance=data.chance(train), doubled=doubled, repeated=repeated, columns=columns)


def inputs_of(recipe: LearnTable) -> dict[str, list[int]]:
    """The places of every column among the inputs."""
    found: dict[str, list[int]] = {}
    at = 0
    for column in recipe.data.read().columns.columns:
        found[column.name] = list(range(at, at + len(column.inputs)))
        at += len(column.inputs)
    return found


def of_answers(signs: Signs, training: Training, parts: Parts, train: data.Examples, valid: data.Examples) -> Signs:
    """What the model answers with the last weights, and how well."""
    outputs: list[Tensor] = []

    def keep(module: nn.Module, given: Any, out: Any) -> None:
        if isinstance(out, Tensor):
            outputs.append(out.detach().cpu())

    def scores(examples: data.Examples) -> dict[str, float]:
        count = max(8, TOKENS // examples.x.shape[1]) if examples.tokens else SCORED
        batches = (moved(batch, training.device) for batch in data.batches_of(examples, min(count, SCORED)))
        return mean_scores(training.task, batches)

    with torch.no_grad(), training.ema.applied() if training.ema else nullcontext(), training.autocast():
        fitted = scores(train).get("loss")
        handle = parts.model.register_forward_hook(keep)
        try:
            ours = scores(valid)
        finally:
            handle.remove()
    return replace(
        signs,
        fitted=fitted,
        answers=answers(outputs, valid),
        better=data.simple(train, valid, ours),
    )


def answers(outputs: list[Tensor], valid: data.Examples) -> Answers | None:
    """How often each class is answered, where the answers are classes."""
    if not valid.classes or not outputs or any(out.dim() != 2 for out in outputs):
        return None
    said = torch.cat(outputs).argmax(dim=-1)
    shares = data.frequencies(said)
    return Answers(
        top=float(shares.max()),
        label=f"class {int(shares.argmax())}",
        true_top=float(data.frequencies(valid.y[: len(said)]).max()),
        count=len(said),
    )
