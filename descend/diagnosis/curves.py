"""Checks on the loss curves: a learning rate that is too high or too low, overfitting, underfitting, no progress.

step        θ ← θ − η g;  on a quadratic of curvature Λ the error is multiplied by 1 − ηΛ, which needs η < 2/Λ
travel      the way that the weights can go in a run: steps · ‖Δθ‖ / ‖θ‖
gap         L_valid − L_train
"""

from __future__ import annotations

import math
from statistics import fmean, median

from descend.diagnosis.signs import Curve, Finding, Signs

RISES = 1.1  # the end above the start, and above a constant answer, by a tenth
NOISE = 1.5  # by half, where only the loss of one first minibatch is known
SPIKES = 3.0  # a loss three times its start is no minibatch noise
BAD = 0.5  # of the loss of a constant answer is left on the training examples
SHORT = 8  # losses below which a curve says nothing
USUAL = 0.01  # a step in the usual range is no evidence
LARGE = 0.1  # a step that changes a matrix by a tenth leaves the region where the gradient holds
DECAY = 0.005  # η λ above this: the decay itself moves the weights, not the learning rate
TRAVEL = 0.1  # weights that change by less than a tenth in the whole run have stayed where they began
STILL = 0.2  # a loss that fell by less than a fifth has not learned yet
WORSE = 0.1  # validation above its best by a tenth of it
NOTICED = 0.03  # and by this share of the first loss, since near 0 a tenth is nothing
GAP = 1.5  # validation loss above the training loss by half
NOTHING = 0.1  # a training loss below a tenth of the validation loss
HELD = 0.25  # a validation loss that is still a quarter of the first loss
FLAT = 0.03  # a fall over the last third by less than this share of the first loss
EVALUATIONS = 4  # before this many a validation curve says nothing
AHEAD = 0.1  # accuracy, or share of the loss, by which a simple method is better


def mean_of_part(curve: Curve, begin: float, end: float) -> float:
    """Mean of the losses between two shares of the curve."""
    n = len(curve)
    first = min(int(begin * n), n - 1)
    return fmean(loss for _, loss in curve[first : max(int(end * n), first + 1)])


def first_loss(signs: Signs) -> float:
    return signs.train[0][1]


def median_move(signs: Signs) -> float | None:
    """The middle layer's ‖ΔW‖ / ‖W‖ in one step."""
    found = [layer.move for layer in signs.layers if math.isfinite(layer.move)]
    return median(found) if found else None


def detect_high_rate(signs: Signs) -> Finding | None:
    """The loss ends above its start, or jumps above it and never learns, or every step turns the weights over."""
    if len(signs.train) < (3 if signs.fault else SHORT) or not signs.ill:
        return None
    end, top = signs.end, max(loss for _, loss in signs.train[1:])
    first = max(first_loss(signs), signs.chance or 0.0)
    size, decay = median_move(signs), (signs.value("optim.lr") or 0.0) * (signs.value("optim.weight_decay") or 0.0)
    if size is not None and size * signs.train[-1][0] < TRAVEL and gradients_arrive(signs):
        return None  # weights that gradients do not move have not diverged
    if end > (RISES if signs.chance else NOISE) * first:
        said = f"the loss rose from {first_loss(signs):.4g} to {end:.4g}"
    elif top > SPIKES * first:
        said = f"the loss started at {first_loss(signs):.4g}, jumped to {top:.4g} and ended at {end:.4g}"
    elif size is not None and size > LARGE and decay < DECAY:
        said = f"the loss went only from {first_loss(signs):.4g} to {end:.4g}"
    else:
        return None
    if size is not None and size > USUAL:
        said += f"; a step at the highest rate changes the weights by {size:.2g} of their norm (0.001 to 0.01 is usual)"
    return Finding(
        "learning-rate-too-high",
        "fault",
        said,
        "θ ← θ − η g; along curvature Λ the error is multiplied by 1 − ηΛ, which shrinks only for η < 2/Λ",
        f"{signs.lower('optim.lr', 0.1)}, or let descend lr-find {signs.name} choose",
    )


def detect_low_rate(signs: Signs) -> Finding | None:
    """The loss hardly falls, gradients arrive, and all the steps together cannot move the weights."""
    size = median_move(signs)
    if size is None or len(signs.train) < SHORT:
        return None
    first, end, steps = first_loss(signs), signs.end, signs.train[-1][0]
    if not (first - end < STILL * abs(first) and size * steps < TRAVEL and gradients_arrive(signs)):
        return None
    factor = min(1000.0, 10 ** round(math.log10(0.003 / max(size, 1e-12))))
    return Finding(
        "learning-rate-too-low",
        "fault",
        f"the loss went from {first:.4g} to {end:.4g} in {steps} steps; a step changes the weights by {size:.2g} of "
        f"their norm (0.001 to 0.01 is usual), all of them by {size * steps:.2g}",
        "θ_T − θ_0 = −η Σ_t g_t: with T steps of size η‖g‖ the weights can move at most T η‖g‖",
        f"{signs.lower('optim.lr', max(factor, 10.0))}, or let descend lr-find {signs.name} choose",
    )


def gradients_arrive(signs: Signs) -> bool:
    """Every layer has a gradient that is not negligible beside the largest."""
    found = [layer.gradient for layer in signs.layers if math.isfinite(layer.gradient)]
    return bool(found) and min(found) > 1e-4 * max(found) > 0


def detect_overfitting(signs: Signs) -> Finding | None:
    """The validation loss rises from its best while the training loss falls, or stays while that goes to nothing."""
    if len(signs.valid) < EVALUATIONS or len(signs.train) < SHORT:
        return None
    step, best = min(signs.valid, key=lambda pair: pair[1])
    last, end = median(loss for _, loss in signs.valid[-2:]), signs.end
    before = [loss for at, loss in signs.train if at <= step][-SHORT:]
    falls = bool(before) and end < fmean(before) and signs.train[-1][0] > step
    rises = last - best > max(WORSE * best, NOTICED * first_loss(signs)) and last > GAP * end
    still = last > mean_of_part(signs.valid, 0.5, 0.75) - FLAT * first_loss(signs)
    apart = end < NOTHING * last and last > HELD * first_loss(signs) and still
    if not falls or not (rises or apart):
        return None
    helps = ["--patience 5 (stop at the best; checkpoints/best has its weights)"]
    if signs.value("optim.weight_decay"):
        helps.append(signs.lower("optim.weight_decay", 10.0))
    if "model.dropout" in signs.values:
        helps.append("--model.dropout 0.2")
    elif "model.hidden" in signs.values:
        helps.append("a smaller --model.hidden")
    return Finding(
        "overfit",
        "warning",
        f"the validation loss was best at step {step} ({best:.4g}) and is now {last:.4g}, while the training "
        f"loss fell to {end:.4g}: a gap of {last - end:.4g}",
        "gap = L_valid − L_train: it grows with the capacity of the model and shrinks with the number of examples",
        f"more training examples, or {', '.join(helps)}",
    )


def has_flattened(signs: Signs) -> bool:
    """Whether the training loss no longer falls."""
    return mean_of_part(signs.train, 0.34, 0.67) - mean_of_part(signs.train, 0.67, 1.0) < FLAT * abs(first_loss(signs))


def detect_underfitting(signs: Signs) -> Finding | None:
    """Training and validation loss are both bad and flat, though a simple method does better with the same examples."""
    if len(signs.train) < SHORT or signs.better is None or not signs.chance or signs.fitted is None:
        return None
    found, end = signs.better, signs.valid[-1][1] if signs.valid else signs.fitted
    ahead = (
        found.theirs - found.ours if found.score == "accuracy" else (found.ours - found.theirs) / max(found.ours, 1e-9)
    )
    if not (has_flattened(signs) and signs.fitted > BAD * signs.chance and end < GAP * signs.fitted and ahead > AHEAD):
        return None
    decay = signs.value("optim.weight_decay") or 0.0
    sizes = [flag for flag in ("model.hidden", "model.width", "model.depth") if flag in signs.values]
    larger = f"a larger --{sizes[0]}" if sizes else "a larger model"
    lighter = signs.lower("optim.weight_decay", 0.01)
    return Finding(
        "underfit",
        "warning",
        f"the training loss is {signs.fitted:.4g}, the validation loss {end:.4g}; {signs.chance:.4g} is the "
        f"loss of an answer that ignores the input; {found.method} has {found.score} {found.theirs:.4g}, the "
        f"model {found.ours:.4g}",
        "L_train(θ*) = bias² + noise: what a too small model, or λ‖θ‖² that is too strong, cannot represent",
        f"{lighter} (it is {decay:g}), then {larger}" if decay > 1 else f"{larger}, or more --steps",
    )


def detect_spikes(signs: Signs) -> Finding | None:
    """Values far above those just before them were logged, and training did not come back from them by itself."""
    steps = sorted({step for step, _ in signs.spikes})
    if not steps:
        return None
    first, more = signs.spikes[0][1], f"; another one at {format_steps(steps[1:])}"
    asked = signs.values.get("spikes", "tell")
    less = [] if signs.value("clip") else ["--clip 1.0"]
    less += [] if asked in ("skip", "rollback") else ["--spikes rollback (or skip)"]
    return Finding(
        "spikes",
        "warning",
        first + (more if len(steps) > 1 else ""),
        "x_t − m > max(10 s, 5 (h − m)) of the 50 values before: median m, deviation s, highest h",
        f"look at the data of that step; {', '.join([*less, signs.lower('optim.lr', 0.5)])}",
    )


def format_steps(steps: list[int]) -> str:
    return ", ".join(map(str, steps[:5])) + (", .." if len(steps) > 5 else "")


def detect_no_progress(signs: Signs) -> Finding | None:
    """Seen while training: the losses stand where they began."""
    if len(signs.valid) < EVALUATIONS or len(signs.train) < SHORT:
        return None
    first, best, done = signs.valid[0][1], min(loss for _, loss in signs.valid), signs.train[-1][0]
    begin = first_loss(signs)
    if first - best > NOTICED * abs(first) or begin - min(best, signs.end) > NOTICED * abs(begin):
        return None
    return Finding(
        "no-progress",
        "warning",
        f"after {done} steps the validation loss is {best:.4g}, the training loss started at {first_loss(signs):.4g}",
        "θ ← θ − η g: either η is wrong, or g does not arrive, or the examples carry no signal",
        "descend doctor RUN measures which of these it is",
    )
