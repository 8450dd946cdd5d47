"""Checks on how long a run was: one that was interrupted, a warm-up or an average that is too long for it.

warm-up     η_t = η · min(1, t / T_warm):  with T steps < T_warm the rate reaches η T / T_warm and no more
average     θ̄ ← β θ̄ + (1 − β) θ remembers about 1 / (1 − β) steps
"""

from __future__ import annotations

from descend.diagnosis.signs import Finding, Signs

WARM = 0.1  # a usual share of the steps for the warm-up
LONGEST = 1 / 3  # the share from which the decay has too little room
AVERAGED = 0.1  # a usual share of the steps that the average remembers


def detect_interruption(signs: Signs) -> Finding | None:
    """The run stopped before its steps were done: what it lacks is training."""
    if not signs.unfinished:
        return None
    why = {"budget": "the time budget was used up", "": "the log breaks off"}.get(signs.ended, signs.ended)
    more = " --budget 10m (adds time)" if signs.ended == "budget" else ""
    return Finding(
        "interrupted",
        "warning",
        f"the run stopped at step {signs.done} of {signs.steps} ({signs.done / signs.steps:.0%}): {why}",
        "θ_T − θ_0 = −η Σ_t g_t: the sum has not been taken to its end, nor has the schedule",
        f"resume it: descend resume RUN{more}",
    )


def detect_long_warmup(signs: Signs) -> Finding | None:
    """The learning rate rises for more than a third of the run, or is still rising when it ends."""
    warmup = signs.value("schedule.warmup") or 0.0
    if not signs.steps or warmup <= LONGEST * signs.steps:
        return None
    rate, never = signs.value("optim.lr"), warmup >= signs.steps
    reached = f": the learning rate ends at {rate * signs.steps / warmup:.2g} of {rate:g}" if rate and never else ""
    return Finding(
        "warm-up-too-long",
        "fault" if never else "warning",
        f"the warm-up takes {warmup:.0f} steps, the run has {signs.steps}{reached}",
        "η_t = η · min(1, t / T_warm): below T_warm steps the rate η is never reached, and the decay never begins",
        f"--schedule.warmup {max(1, round(WARM * signs.steps))}, or --steps {round(warmup / WARM)}",
    )


def detect_long_average(signs: Signs) -> Finding | None:
    """The weights that are judged and saved average over more steps than the run has."""
    beta = signs.value("ema") or 0.0
    length = 1 / (1 - beta) if beta < 1 else float("inf")
    if not beta or not signs.steps or round(length, 3) < signs.steps:
        return None
    fitting = max(0.0, 1 - 1 / (AVERAGED * signs.steps))
    return Finding(
        "average-too-long",
        "warning",
        f"--ema {beta:g} averages the weights over about {length:.0f} steps, the run has {signs.steps}",
        "θ̄ ← θ̄ + w_t (θ − θ̄), w_t = max(1 − β, 9 / (t + 8)): β has no effect before step 9 / (1 − β) − 8",
        f"--ema {fitting:.2g}, or --steps {round(length / AVERAGED)}",
    )
