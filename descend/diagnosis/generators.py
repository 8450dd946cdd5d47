"""Checks on generators, from what was measured while they trained and what their validation scores say.

modes, classes      how many kinds of examples a generator still makes, as counted by its judge
coverage            their share of all kinds
margin              share of scores beyond ±1: there the hinge loss teaches the discriminator nothing
"""

from __future__ import annotations

from statistics import median

from descend.diagnosis.signs import Curve, Finding, Signs

HALF = 0.5  # of the kinds: below it a generator has collapsed
FALLEN = 0.6  # of its own best: below it a generator has lost what it made before
LAST = 3  # evaluations at the end that must agree
BEYOND = 0.98  # share of both kinds of scores outside the margin: the discriminator has won
FEW = 8  # values below which a series says nothing


def end_of(curve: Curve) -> float | None:
    """The median of the last evaluations; None where there are too few."""
    return median(value for _, value in curve[-LAST:]) if len(curve) > LAST else None


def count_kinds(signs: Signs) -> tuple[str, Curve, float] | None:
    """What was counted, and how many there are in all."""
    total = signs.value("data.modes")
    if total and "modes" in signs.judged:
        return "modes", signs.judged["modes"], total
    coverage = signs.judged.get("coverage", ())
    if coverage and "classes" in signs.judged and coverage[-1][1] > 0:
        return "classes", signs.judged["classes"], round(signs.judged["classes"][-1][1] / coverage[-1][1])
    return None


def detect_mode_collapse(signs: Signs) -> Finding | None:
    """The generator makes less than half of the kinds, or far fewer than it made before."""
    counted = count_kinds(signs)
    if counted is None:
        return None
    name, curve, total = counted
    end, best = end_of(curve), max((value for _, value in curve), default=0.0)
    if end is None or (end >= HALF * total and end >= FALLEN * best):
        return None
    lost = f", after {best:.0f} at its best" if best > end else ""
    loss = signs.values.get("game.loss")
    steadier = "--game.norm spectral --game.loss hinge" if loss in (None, "non-saturating", "saturating") else ""
    moves = signs.value("game.g_moves") or 1
    fewer = f"--game.g-moves {moves - 1:.0f}" if moves > 1 else ""
    changes = [part for part in (steadier, fewer, signs.lower("optim.g.lr", 0.5)) if part]
    return Finding(
        "mode-collapse",
        "warning",
        f"generated examples cover {end:.0f} of {total:.0f} {name} over the last evaluations{lost}",
        "G maps all z to what D believes most; while it does, −log D(G(z)) is small and nothing asks for the rest",
        ", or ".join(changes),
    )


def detect_margin_left(signs: Signs) -> Finding | None:
    """Both kinds of scores lie beyond the hinge's margin: the discriminator has won and learns no more."""
    shares = []
    for name in ("real_beyond_margin", "fake_beyond_margin"):
        curve = signs.measured.get(name, ())
        if len(curve) < FEW:
            return None
        shares.append(median(value for _, value in curve[-max(2, len(curve) // 4) :]))
    if min(shares) < BEYOND:
        return None
    return Finding(
        "discriminator-beyond-margin",
        "warning",
        f"{shares[0]:.0%} of real and {shares[1]:.0%} of generated examples are scored beyond ±1 over the last quarter",
        "max(0, 1 − s) + max(0, 1 + t) = 0 for s > 1, t < −1: no gradient, so D stays as it is while G follows it",
        f"{signs.lower('optim.d.lr', 0.3)}, or --game.norm spectral",
    )


GENERATORS = (detect_mode_collapse, detect_margin_left)
