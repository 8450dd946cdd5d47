"""Checks on how long a run was: one that was interrupted, and a warm-up that never ends.

warm-up     η_t = η · min(1, t / T_warm):  with T steps < T_warm the rate reaches η T / T_warm and no more
"""

from __future__ import annotations

from descend.diagnosis.signs import Finding, Signs

WARM = 0.1  # a usual share of the steps for the warm-up


def detect_interruption(signs: Signs) -> Finding | None:
    """The run stopped before its steps were done: what it lacks is training."""
    if not signs.unfinished:
        return None
    why = {"budget": "the time budget was used up", "": "the log breaks off"}.get(signs.ended, signs.ended)
    more = " with a larger --budget" if signs.ended == "budget" else ""
    return Finding(
        "interrupted",
        "warning",
        f"the run stopped at step {signs.done} of {signs.steps} ({signs.done / signs.steps:.0%}): {why}",
        "θ_T − θ_0 = −η Σ_t g_t: the sum has not been taken to its end, nor has the schedule",
        f"resume it{more}: descend resume RUN",
    )


def detect_long_warmup(signs: Signs) -> Finding | None:
    """The learning rate is still rising when the run ends."""
    warmup = signs.value("schedule.warmup") or 0.0
    if not signs.steps or warmup < signs.steps:
        return None
    rate = signs.value("optim.lr")
    reached = f": the learning rate ends at {rate * signs.steps / warmup:.2g} of {rate:g}" if rate else ""
    return Finding(
        "warm-up-too-long",
        "fault",
        f"the warm-up takes {warmup:.0f} steps, the run has {signs.steps}{reached}",
        "η_t = η · min(1, t / T_warm): below T_warm steps the rate η is never reached, and the decay never begins",
        f"--schedule.warmup {max(1, round(WARM * signs.steps))}, or --steps {round(warmup / WARM)}",
    )
