"""The examination of a run: read its files, build it again, measure, check, and tell causes from what follows of them.

The order of the checks is the order of causes. What holds for the initial weights already cannot come from training, so
those checks are made first; a finding that a cause explains is not listed as one of its own.
"""

from __future__ import annotations

import fcntl
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn

from descend.diagnosis import examples as data
from descend.diagnosis.course import find_highest_rate, read_course
from descend.diagnosis.curves import (
    detect_high_rate,
    detect_low_rate,
    detect_overfitting,
    detect_spikes,
    detect_underfitting,
)
from descend.diagnosis.energies import ENERGIES
from descend.diagnosis.evidence import detect_constant_predictions, detect_leak, detect_nan
from descend.diagnosis.games import GAMES
from descend.diagnosis.generators import GENERATORS
from descend.diagnosis.inside import (
    detect_dead_relu,
    detect_exploding,
    detect_growing_norms,
    detect_saturation,
    detect_vanishing,
)
from descend.diagnosis.latent import LATENT
from descend.diagnosis.probe import measure_moves, probe
from descend.diagnosis.schedule import detect_interruption, detect_long_average, detect_long_warmup
from descend.diagnosis.signs import Answers, Finding, Signs
from descend.engine import checkpoint
from descend.engine.distributed import World
from descend.engine.evaluation import score_set
from descend.engine.hardware import move_batch
from descend.engine.parts import Parts
from descend.engine.run import Run
from descend.engine.training import Training
from descend.errors import Mistake
from descend.kinds.recipe import Recipe
from descend.kinds.saved import read_saved
from descend.kinds.table import LearnTable
from descend.weights.checkpoints import resolve_checkpoint

Check = Callable[[Signs], Finding | None]

INSIDE: tuple[Check, ...] = (detect_dead_relu, detect_saturation, detect_exploding, detect_vanishing)
COURSE: tuple[Check, ...] = (
    *(detect_growing_norms, detect_low_rate, detect_leak, detect_overfitting),
    *(detect_constant_predictions, detect_underfitting, detect_spikes),
)
SCORED = 1024  # training and validation examples that are scored
TOKENS = 8192  # or tokens, where the examples are texts
SICK = {"vanishing-gradient", "constant-predictions", "underfit", "learning-rate-too-low"}
SHORT = {"constant-predictions", "underfit", "learning-rate-too-low"}  # what more steps may mend
EXPLAINS = {
    "interrupted": SHORT,
    "warm-up-too-long": SHORT,
    "kl-too-large": {"clip-fraction-too-large"},
    "learning-rate-too-high": SICK | {"dead-relu", "saturated-units", "exploding-gradient", "overfit", "spikes"},
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


def examine(run: Run, which: str | int = "last") -> Examination:
    """Look at a run with the weights of a checkpoint; nothing in its folder is changed."""
    saved, lines = run.recipe, run.lines()
    signs, notes = replace(read_course(saved, lines), running=is_training(run)), []
    if signs.running:
        notes.append(f"the run is still training; this is its state at step {signs.done} of {signs.steps}")
    initial: Signs | None = None
    try:
        _, recipe, threads = read_saved(saved, run.folder / "recipe.json")
        torch.set_num_threads(threads)
        parts = recipe.build()
    except Mistake as mistake:
        notes.append(f"the run cannot be rebuilt, so only its curves were read: {mistake}")
    else:
        train, valid = data.draw_epoch(parts.stream), data.take_valid(parts.valid)
        if train is not None and valid is not None:
            signs = look_at_examples(signs, recipe, train, valid)
        training = Training(parts, replace(recipe.loop, compile="off"), recipe.schedule, World())
        layers, units = probe(training)
        initial = replace(signs, layers=layers, units=units)
        if checkpoint.names(run.checkpoints):
            training.load_state_dict(state_of(run, which, notes.append))
            layers, units = probe(training)
        else:
            notes.append("there is no checkpoint yet: the layers are those of the initial weights")
        if train is not None and valid is not None:
            signs = look_at_answers(signs, training, parts, train, valid)
        signs = replace(signs, layers=measure_moves(training, layers, find_highest_rate(lines)), units=units)
    found = order_findings(signs, initial, tuple(notes))
    named = (replace(finding, change=finding.change.replace("RUN", str(run.folder))) for finding in found.findings)
    return replace(found, findings=tuple(named))


def is_training(run: Run) -> bool:
    """Whether a process is training in the folder: it holds the lock."""
    try:
        with (run.folder / "lock").open() as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


def state_of(run: Run, which: str | int, warn: Callable[[str], None]) -> dict[str, Any]:
    """The state of a checkpoint; of the newest intact one for "last"."""
    if which == "last":
        return checkpoint.newest(run.checkpoints, warn)[2]
    return checkpoint.load(resolve_checkpoint(run.folder, which))[1]


def order_findings(signs: Signs, initial: Signs | None, notes: tuple[str, ...] = ()) -> Examination:
    """All checks in the order of causes; what one explains is set aside."""
    early = [found for check in INSIDE if initial and (found := check(initial))]
    early = [replace(found, evidence=f"already with the initial weights, {found.evidence}") for found in early]
    checks = (detect_high_rate, *INSIDE, *COURSE, *GAMES, *GENERATORS, *LATENT, *ENERGIES)
    late = [found for check in checks if (found := check(signs))]
    early, late = (sorted(some, key=lambda found: found.severity != "fault") for some in (early, late))
    length = (detect_interruption, detect_long_warmup, detect_long_average)
    findings = [found for check in (detect_nan, *length) if (found := check(signs))]
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


def look_at_examples(signs: Signs, recipe: Recipe, train: data.Examples, valid: data.Examples) -> Signs:
    """What the examples say alone."""
    doubled, repeated = data.measure_overlap(train, valid)
    columns: tuple[tuple[str, float], ...] = ()
    if isinstance(recipe, LearnTable) and train.x.dim() == 2:
        columns = data.rate_columns(train, list_inputs(recipe))
    return replace(
        signs,
        spoilt=data.find_spoilt(train),
        chance=data.loss_of_constant(train),
        doubled=doubled,
        repeated=repeated,
        columns=columns,
    )


def list_inputs(recipe: LearnTable) -> dict[str, list[int]]:
    """The places of every column among the inputs."""
    found: dict[str, list[int]] = {}
    at = 0
    for column in recipe.data.read().columns.columns:
        found[column.name] = list(range(at, at + len(column.inputs)))
        at += len(column.inputs)
    return found


def look_at_answers(
    signs: Signs, training: Training, parts: Parts, train: data.Examples, valid: data.Examples
) -> Signs:
    """What the model answers with the last weights, and how well."""
    outputs: list[Tensor] = []

    def keep(module: nn.Module, given: Any, out: Any) -> None:
        if isinstance(out, Tensor):
            outputs.append(out.detach().cpu())

    def scores(examples: data.Examples) -> dict[str, float]:
        count = max(8, TOKENS // examples.x.shape[1]) if examples.tokens else SCORED
        batches = (move_batch(batch, training.device) for batch in data.take_batches(examples, min(count, SCORED)))
        return score_set(training.task, batches)

    with torch.no_grad(), training.ema.swap_in() if training.ema else nullcontext(), training.autocast():
        fitted = scores(train).get("loss")
        handle = parts.model.register_forward_hook(keep)
        try:
            ours = scores(valid)
        finally:
            handle.remove()
    return replace(
        signs,
        fitted=fitted,
        answers=count_answers(outputs, valid),
        better=data.try_simple_method(train, valid, ours),
    )


def count_answers(outputs: list[Tensor], valid: data.Examples) -> Answers | None:
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
